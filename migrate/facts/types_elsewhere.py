"""Names that other files give types of tensors on a GPU: `dtype = torch.cuda.FloatTensor if cuda else ...`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .constants_elsewhere import keys_of

if TYPE_CHECKING:
    from .script import Facts

NAMES_TYPE = re.compile(r"^[ \t]*(\w+)[ \t]*=.*\bcuda\.\w+Tensor\b", re.MULTILINE)


def reads_of_types(facts: Facts) -> Iterator[tuple[ast.Name | ast.Attribute, str]]:
    """Where a file reads such a name, each with the file and the name: `settings.dtype`."""
    keys = {f"{other.stem}.{name}" for other in facts.others for name in other.once(_named)}
    if not keys:
        return
    names = {key.partition(".")[2] for key in keys}
    aliases = (a for s in facts.walk(ast.ImportFrom) for a in s.names)
    asked = names | {a.asname or a.name for a in aliases if a.name in names}
    reads: list[ast.Name | ast.Attribute] = [n for n in facts.walk(ast.Name) if n.id in asked]
    reads += [a for name in names for a in facts.attributes.get(name, ())]
    for read in reads:
        key = next((key for key in keys_of(facts, read) if key in keys), None)
        if key is not None and isinstance(read.ctx, ast.Load):
            yield read, key


def _named(text: str) -> list[str]:
    return NAMES_TYPE.findall(text) if "cuda." in text else []

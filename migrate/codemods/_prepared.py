"""What every machine needs on its own disk: folders, downloads, archives that are unpacked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ..facts.nodes import walk
from ..facts.script import Facts
from ._writers import WRITERS
from .once import WRITES

PREPARES = re.compile(
    r"^_*(download|prepare_data|mkdir|makedirs|extractall|unpack|unzip|untar|urlretrieve|wget|curl)|_(download|unpack|unzip|untar)$|"
    r"^(snapshot|hf_hub|maybe)_download|download_and_|^load_dataset$",
    re.IGNORECASE,
)
SHELL = {"os.system", "subprocess.run", "subprocess.call", "subprocess.check_call"}
FETCHES = re.compile(r"wget|curl|unzip|tar |mkdir|gsutil|aws s3|rsync|git clone")


def prepares_files(facts: Facts, body: list[ast.stmt]) -> bool:
    """Whether statements bring files to a machine, and write none of the script's own results beside it."""
    calls = _calls(facts, body, set())
    full = [facts.names.resolve(c.func) or "" for c in calls]
    if any(f in WRITERS or f in WRITES or f == "torch.save" for f in full):
        return False
    return any(_prepares(c, f) for c, f in zip(calls, full, strict=True))


def _calls(facts: Facts, body: Iterable[ast.AST], asked: set[ast.AST]) -> list[ast.Call]:
    """The calls of statements, and of the functions of this file that they call."""
    found = [n for s in body for n in walk(s, ast.Call)]
    own = {f for c in found if (f := facts.devices.function_of(c)) is not None} - asked
    asked |= own
    return found + [c for f in own for c in _calls(facts, [f], asked)]


def _prepares(call: ast.Call, full: str) -> bool:
    if full in SHELL:
        return bool(FETCHES.search(ast.unparse(call)))
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    asked = any(k.arg == "download" and ast.unparse(k.value) == "True" for k in call.keywords)
    return asked or PREPARES.search(name) is not None

"""Comments inside of a statement over several lines stay where the lines that they ended go: above the statement.

net = (
    Net()
    # to the card
    .to(device)  # or the CPU
    .train()
)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

# what tools read is about its own line, or about all that follows it
FOR_TOOLS = re.compile(r"#\s*(noqa|nosec|type:|pylint:|fmt:|mypy:|pyright:|ruff:|isort:|yapf:|pragma:)")


def with_comments(original: Any, updated: Any, fields: Sequence[str]) -> Any:
    """The statement with the comments that these of its fields have lost as lines above it."""
    lost = Counter(_comments(original, fields))
    lost.subtract(_comments(updated, fields))
    found: list[cst.EmptyLine] = []
    for text in _comments(original, fields):
        if lost[text] > 0 and not FOR_TOOLS.match(text):
            lost[text] -= 1
            found.append(cst.EmptyLine(comment=cst.Comment(text)))
    return updated.with_changes(leading_lines=[*updated.leading_lines, *found]) if found else updated


def changes_in(original: Any, updated: Any, fields: Sequence[str]) -> bool:
    return any(getattr(original, name) is not getattr(updated, name) for name in fields)


def _comments(node: Any, fields: Sequence[str]) -> Iterator[str]:
    for name in fields:
        part = getattr(node, name)
        for inner in part if isinstance(part, (list, tuple)) else [part]:
            yield from _below(inner)


def _below(node: Any) -> Iterator[str]:
    """The comments below a node, in order; those of a lambda go where it goes."""
    if isinstance(node, cst.Comment):
        yield node.value
    elif isinstance(node, cst.CSTNode) and not isinstance(node, cst.Lambda):
        for child in node.children:
            yield from _below(child)

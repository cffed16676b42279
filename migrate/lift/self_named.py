"""`{loss=}` of an f-string shows its own text: where a name in it moves, the text is written beside the value."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from ..facts.formatted import BEHIND, names_itself
from ..facts.script import Facts
from .recipe import CannotLift

Span = tuple[int, int]


def spelled_out(facts: Facts, node: ast.FormattedValue, changed: Collection[Span]) -> dict[Span, str]:
    """`loss={self.loss!r}` for `{loss=}`, where what is in it changes."""
    text, (start, stop) = facts.text.text, facts.text.span(node.value)
    if not any(start <= a and b <= stop for a, b in changed) or not names_itself(facts, node):
        return {}
    opened = text.rindex("{", 0, start)
    found = BEHIND.match(text, stop)
    assert found is not None
    shown, behind = text[opened + 1 : found.end()], text[stop : text.index("=", stop)].rstrip()
    if re.search(r"[\\\"'\n]", shown):
        raise CannotLift(node, f"`{{{shown}}}` shows its own text")
    own = "" if text[found.end()] in ":!" else "!r"
    return {
        (opened, opened): shown.replace("{", "{{").replace("}", "}}"),
        (stop + len(behind), found.end()): own,
    }

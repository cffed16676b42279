"""What stands in f-strings: an expression there can be changed where it does not show its own text, as `{x.cuda()=}`.

From Python 3.10 on `ast` tells the place of each.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts

BEHIND = re.compile(r"[)\s]*=\s*")


class Formatted:
    """The f-strings of a file."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._around: dict[ast.AST, list[ast.expr]] = {}  # the parts of f-strings that a node stands in
        for string in facts.walk(ast.JoinedStr):
            for part in string.values:
                for n in walk(part):
                    self._around.setdefault(n, []).append(part)

    def holds(self, node: ast.AST) -> bool:
        return node in self._around

    def is_fixed(self, node: ast.AST) -> bool:
        """Whether a node stands in an f-string and is to stay as it is."""
        parts = self._around.get(node, ())
        return any(not isinstance(p, ast.FormattedValue) or names_itself(self.facts, p) for p in parts)


def names_itself(facts: Facts, node: ast.FormattedValue) -> bool:
    """`{loss=}`"""
    found = BEHIND.match(facts.text.text, facts.text.span(node.value)[1])
    return found is not None and facts.text.text[found.end()] in ":!}"

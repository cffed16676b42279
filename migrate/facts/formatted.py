"""What stands in f-strings: an expression there can be changed where it does not show its own text, as `{x.cuda()=}`.

Before Python 3.12 `ast` looks for the place of each by its text, so what is there has to be the expression.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts

BEHIND = re.compile(r"[)\s]*=\s*")
BEFORE = re.compile(r"{[(\s]*\Z")


class Formatted:
    """The f-strings of a file."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._around: dict[ast.AST, list[ast.expr]] = {}  # the parts of f-strings that a node stands in
        for string in facts.walk(ast.JoinedStr):
            for part in string.values:
                for n in walk(part):
                    self._around.setdefault(n, []).append(part)
        self._known: dict[ast.FormattedValue, bool] = {}

    def holds(self, node: ast.AST) -> bool:
        return node in self._around

    def is_fixed(self, node: ast.AST) -> bool:
        """Whether a node stands in an f-string and is to stay as it is."""
        return not all(isinstance(p, ast.FormattedValue) and self._is_open(p) for p in self._around.get(node, ()))

    def _is_open(self, part: ast.FormattedValue) -> bool:
        if part not in self._known:
            self._known[part] = _is_there(self.facts, part) and not names_itself(self.facts, part)
        return self._known[part]


def names_itself(facts: Facts, node: ast.FormattedValue) -> bool:
    """`{loss=}`"""
    found = BEHIND.match(facts.text.text, facts.text.span(node.value)[1])
    return found is not None and facts.text.text[found.end()] in ":!}"


def _is_there(facts: Facts, part: ast.FormattedValue) -> bool:
    """Whether the text at the place of an expression is that expression, in braces."""
    start, _ = facts.text.span(part.value)
    source = facts.text.get(part.value)
    try:
        found = ast.parse(f"({source})", mode="eval").body
    except (SyntaxError, ValueError):
        return False
    opened = BEFORE.search(facts.text.text, max(0, start - 40), start)
    return opened is not None and ast.dump(found) == ast.dump(part.value)

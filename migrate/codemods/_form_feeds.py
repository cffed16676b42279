"""Form feeds before a statement, which libcst does not keep: it gets a comment in their place until it is done.

Python counts the column of such a statement from the form feed on, `ast` from the beginning of the line.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property

from ..facts.nodes import walk
from ..facts.script import Facts
from ._regions import FEED

Span = tuple[int, int, str]


class FormFeeds:
    """Those of a file by the line of the statement that they stand before."""

    def __init__(self, facts: Facts, mark: str) -> None:
        self.facts, self.mark = facts, f"#{mark}"

    @cached_property
    def before(self) -> dict[int, tuple[str, str]]:
        """What stands on a line up to its last form feed, and from there to the statement."""
        text = self.facts.text
        found: dict[int, tuple[str, str]] = {}
        for s in walk(self.facts.tree) if FEED in text.text else ():
            if isinstance(s, ast.stmt):
                line = text.line_of(text.span(s)[0])
                head, feed, margin = text.margin(s).rpartition(FEED)
                if feed and not (head + margin).strip():
                    found[line] = head + feed, margin
        return found

    def edits(self, first: int, last: int) -> list[Span]:
        """(start, stop, new) that take them out of lines first to last; `new` is a line of its own."""
        starts = self.facts.text.starts
        return [
            (starts[line - 1], starts[line - 1] + len(head), f"{margin}{self.mark}{line}{self.facts.text.newline}")
            for line, (head, margin) in self.before.items()
            if first <= line <= last
        ]

    def column(self, line: int, column: int) -> int:
        """The column that libcst tells."""
        return column - len(self.before[line][0]) if line in self.before else column

    def back(self, text: str) -> str:
        """The text with form feeds where their comments are."""
        if not self.before:
            return text
        return re.sub(rf"[ \t]*{self.mark}(\d+)(\r\n?|\n|$)", lambda m: self.before[int(m[1])][0], text)

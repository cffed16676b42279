"""Lines of a block that only moves out of its branch are not read: libcst gets a name in the place of each.

`if rank == 0: ...` of a script for one process is what stands in it, be that a hundred lines.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..facts.nodes import walk
from ..facts.script import Facts
from ._regions import FEED
from ._removed import Edit, has_its_lines
from .base import Change, Key
from .branch_rewrites import body_only, else_only, first_gone

MOVING = (body_only, else_only, first_gone)  # they look at nothing in the blocks
SHORT = 12  # shorter ones cost no more than a name


@dataclass
class KeptLines:
    """The lines that names stand for; `word` is none that the text has."""

    facts: Facts
    word: str
    kept: list[str] = field(default_factory=list)
    ends: dict[tuple[int, int], int] = field(default_factory=dict)  # lines and columns to which they went, as they do

    def edits(self, keys: Sequence[Key], wanted: Mapping[Key, list[Change]]) -> Iterator[Edit]:
        """The names for the lines of blocks that move; `keys` are what is planned, in the order of the text."""
        lines = [key[1] for key in keys]
        seen: set[ast.AST] = set()
        for key in keys if FEED not in self.facts.text.text else ():
            if any(change.rewrite not in MOVING for change in wanted[key]):
                continue
            for s in walk(wanted[key][0].node):
                if s in seen or not isinstance(s, ast.stmt) or isinstance(getattr(s, "body", None), list):
                    continue
                seen.add(s)
                at = bisect_left(lines, s.lineno)
                planned = at < len(lines) and lines[at] == s.lineno
                if not planned and s.lineno == s.end_lineno and has_its_lines(self.facts, s):
                    yield from self._name(s)

    def _name(self, s: ast.stmt) -> Iterator[Edit]:
        start, stop = self.facts.text.span(s)
        if stop - start < SHORT:
            return
        name = f"{self.word}{len(self.kept)}_"
        line, _, _, end = self.facts.text.key(s)
        self.ends[line, end] = end - (stop - start) + len(name)
        self.kept.append(self.facts.text.text[start:stop])
        yield start, stop, name

    def end(self, line: int, column: int) -> int:
        """The column at which what ended at one ends now."""
        return self.ends.get((line, column), column)

    def back(self, text: str) -> str:
        """The text with the lines themselves."""
        return re.sub(rf"{self.word}(\d+)_", lambda m: self.kept[int(m[1])], text) if self.kept else text

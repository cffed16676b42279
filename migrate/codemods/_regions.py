"""The statements that a pass has to read: libcst gets these alone, and every byte around them stays as it is.

A compound statement of which only inner statements change is not read itself, as long as each of its blocks keeps one;
of one whose head changes the head is read, above a stub of a body.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..facts.script import Facts
from ..facts.trees import groups

Place = tuple[int, int, int, int]  # as facts.text.key tells them
Group = list[ast.stmt]  # one statement, or those that semicolons keep on its lines
COMMENT = "#"
FEED = "\f"  # columns are counted from it
HEADS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.AsyncFor, ast.While, ast.If, ast.With)


@dataclass(frozen=True)
class Region:
    """Lines `first` to `last` of a block: statements with the comments above them, and up to the next statement.

    Or the head of a statement, with the one line `stub` for its body.
    """

    first: int
    last: int
    margin: str
    stub: str = ""


def regions_of(facts: Facts, places: Iterable[Place], heads: Collection[Place] = ()) -> list[Region]:
    """The regions that hold all of the places, in the order of the text; of the statements `heads` the heads change."""
    return _Cut(facts, sorted(places), heads).block(facts.tree.body, keeps_one=False) or []


class _Cut:
    def __init__(self, facts: Facts, places: list[Place], heads: Collection[Place]) -> None:
        self.facts = facts
        self.whole = set(places).difference(heads)
        self.starts = [place[:2] for place in places]
        self.lines = facts.text.lines

    def inside(self, statements: Sequence[ast.stmt]) -> int:
        """How many of the places are in statements that follow each other."""
        if not statements:
            return 0
        at = bisect_left(self.starts, (_first_line(statements[0]),))
        if at == len(self.starts) or self.starts[at][0] > (statements[-1].end_lineno or 0):
            return 0
        first, last = self.facts.text.key(statements[0]), self.facts.text.key(statements[-1])
        start = (_first_line(statements[0]), 0) if getattr(statements[0], "decorator_list", ()) else first[:2]
        return bisect_left(self.starts, last[2:]) - bisect_left(self.starts, start)

    def block(self, statements: list[ast.stmt], keeps_one: bool = True) -> list[Region] | None:
        """The regions of a block, neighbours in one; None where nothing may be left of a block that needs something."""
        parted = list(groups(statements))
        parts = [self.parts(group) for group in parted]
        if keeps_one and all(part is None for part in parts):
            return None
        found: list[Region] = []
        whole: Group = []
        for i, group in enumerate(parted):
            inner = parts[i]
            if inner is not None:
                found += inner
                continue
            whole += group
            after = parted[i + 1] if i + 1 < len(parted) else None
            if after is None or parts[i + 1] is not None:
                found.append(self.region(whole, after))
                whole = []
        return found

    def parts(self, group: Group) -> list[Region] | None:
        """The regions below a statement that itself stays; None where it has to be read as a whole."""
        count = self.inside(group)
        if not count:
            return []
        blocks = list(_blocks(group[0]))
        found: list[Region] = []
        if len(group) > 1:
            return None
        if sum(map(self.inside, blocks)) < count:
            head = self.head(group[0])
            if head is None:
                return None
            found.append(head)
        for block in filter(self.inside, blocks):
            if self.facts.text.margin(block[0]).strip():
                return None  # on the line of the head
            inner = self.parts(block) if self.is_elif(block) else self.block(block)
            if inner is None:
                return None
            found += inner
        return found

    def head(self, s: ast.stmt) -> Region | None:
        """The lines of a head above its block; None where more changes than the head."""
        if not isinstance(s, HEADS) or self.facts.text.key(s) in self.whole or self.is_elif([s]):
            return None
        margins = [self.facts.text.margin(n).rpartition(FEED)[2] for n in (s, s.body[0])]
        last = _first_line(s.body[0]) - 1
        if margins[1].strip() or last < s.lineno:
            return None  # on the line of the head
        while self.is_blank(last):
            last -= 1
        return Region(_first_line(s), last, margins[0], f"{margins[1]}pass")

    def is_elif(self, block: list[ast.stmt]) -> bool:
        return isinstance(block[0], ast.If) and self.facts.text.is_elif(block[0])

    def region(self, whole: Group, after: Group | None) -> Region:
        first = _first_line(whole[0])
        while first > 1 and self.is_blank(first - 1):
            first -= 1
        margin = self.facts.text.margin(whole[0]).rpartition(FEED)[2]
        if after is not None:
            return Region(first, _first_line(after[0]) - 1, margin)
        last = at = whole[-1].end_lineno or first
        while at < len(self.lines) and self.is_blank(at + 1):  # comments at the end of a block are the block's
            at += 1
            if self.lines[at - 1].strip():
                if not self.facts.text.text.startswith(margin, self.facts.text.starts[at - 1]):
                    break
                last = at
        return Region(first, last, margin)

    def is_blank(self, line: int) -> bool:
        return self.lines[line - 1].strip()[:1] in ("", COMMENT)


def _first_line(s: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(s, "decorator_list", [])
    return min([s.lineno, *(d.lineno for d in decorators)])


def _blocks(s: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(s, name, None):
            yield block
    for holder in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
        yield holder.body

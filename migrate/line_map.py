"""Which line of the old text a line of the new one was."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from functools import cached_property

from .facts.text import lines_of

LIKE = 0.6  # of the words of two lines, what both have
WORD = re.compile(r"\w+")
OWN = re.compile(r"\bself\.")


def line_map(new: str, old: str) -> Callable[[int], int]:
    """A function from lines of the new text to those of the old one.

    A line that a method has now is the one line that says the same, but for its margin and `self.`, wherever it stood.
    """
    return _Lines(new, old).line


class _Lines:
    """The lines of both texts; what takes time is found when it is asked for."""

    def __init__(self, new: str, old: str) -> None:
        self.new, self.old = new, old
        self._words: dict[int, frozenset[str]] = {}

    def line(self, n: int) -> int:
        for kind, a, b, c, d in self._blocks:
            if a <= n - 1 < b:
                at = min(c + (n - 1 - a), max(d - 1, c)) + 1
                return at if kind == "equal" else self._like(_said(self._lines[n - 1]), at, range(c + 1, d + 1))
        return n

    def _like(self, text: str, at: int, block: range) -> int:
        """The one old line that says this, or most of it: of the block first, then where that at the place does not."""
        same = self._by_text.get(text, [])
        if not same:
            if near := self._most_alike(text, block):
                return at if at in near else near[0]
            same = self._most_alike(text, range(1, len(self._before) + 1))
        within = [n for n in same if n in block] or same
        return within[0] if len(within) == 1 else at

    def _most_alike(self, text: str, among: range) -> list[int]:
        """The old lines, of some, that say most of it; none where each says much else."""
        own, found = _words(text), {n: self._words_of(n) for n in among}
        alike = {n: 2 * len(own & others) / (len(own) + len(others) or 1) for n, others in found.items()}
        most = max(alike.values(), default=0)
        return [n for n in among if alike[n] == most] if most >= LIKE else []

    def _words_of(self, n: int) -> frozenset[str]:
        if n not in self._words:
            self._words[n] = _words(self._before[n - 1])
        return self._words[n]

    @cached_property
    def _lines(self) -> list[str]:
        return lines_of(self.new)

    @cached_property
    def _before(self) -> list[str]:
        return lines_of(self.old)

    @cached_property
    def _blocks(self) -> list[tuple[str, int, int, int, int]]:
        return list(_blocks(self._lines, self._before))

    @cached_property
    def _by_text(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for n, text in enumerate(self._before, 1):
            found.setdefault(_said(text), []).append(n)
        return found


def _blocks(new: list[str], old: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """difflib's blocks; what both begin and end with is not compared with anything else."""
    short = min(len(new), len(old))
    head = next((i for i in range(short) if new[i] != old[i]), short)
    tail = next((i for i in range(short - head) if new[-1 - i] != old[-1 - i]), short - head)
    a, b = len(new) - tail, len(old) - tail
    yield "equal", 0, head, 0, head
    for kind, *at in difflib.SequenceMatcher(None, new[head:a], old[head:b], autojunk=False).get_opcodes():
        i, j, k, m = (n + head for n in at)
        yield kind, i, j, k, m
    yield "equal", a, len(new), b, len(old)


def _said(line: str) -> str:
    return OWN.sub("", line.strip()) if "self." in line else line.strip()


def _words(line: str) -> frozenset[str]:
    return frozenset(WORD.findall(_said(line)))

"""Which line of the old text a line of the new one was."""

from __future__ import annotations

import difflib
import keyword
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from .facts.text import Text, lines_of

LIKE = 0.6  # of the words of two lines, what both have
WORD = re.compile(r"\w+")
OF_EVERY_LOOP = {*keyword.kwlist, "range"} - {"True", "False", "None"}  # by these no line says what another does
FEW = 20  # lines are looked at one by one
OWN = re.compile(r"\bself\.")
Block = tuple[str, int, int, int, int]  # "equal" or not, and the lines of the new text and of the old one, from 0


def line_map(new: str, old: str) -> Callable[[int], int]:
    """A function from lines of the new text to those of the old one.

    A line that a method has now is the one line that says the same, but for its margin and `self.`, wherever it stood.
    """
    return _Lines(new, old).line if new != old else lambda n: n


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
        own = _words(text)
        near = self._with_any(own) if len(among) > FEW else among
        found = {n: self._words_of(n) for n in among if n in near}
        alike = {n: 2 * len(own & others) / (len(own) + len(others) or 1) for n, others in found.items()}
        most = max(alike.values(), default=0)
        return [n for n in found if alike[n] == most] if most >= LIKE else []

    def _with_any(self, words: frozenset[str]) -> set[int]:
        """The old lines that may say most of some words: all that have one of so many that no such line has none."""
        several = sorted(words, key=len, reverse=True)[: int(len(words) * (1 - LIKE / (2 - LIKE))) + 1]
        found: set[int] = set()
        for word in several:
            at = self.old.find(word)
            while at >= 0:
                found.add(n := self._places.line_of(at))
                at = self.old.find(word, self._places.line_span(n, n)[1])
        return found

    def _words_of(self, n: int) -> frozenset[str]:
        if n not in self._words:
            self._words[n] = _words(self._before[n - 1])
        return self._words[n]

    @cached_property
    def _places(self) -> Text:
        return Text(self.old)

    @cached_property
    def _lines(self) -> list[str]:
        return lines_of(self.new)

    @cached_property
    def _before(self) -> list[str]:
        return lines_of(self.old)

    @cached_property
    def _blocks(self) -> list[Block]:
        return list(_blocks(self._lines, self._before))

    @cached_property
    def _by_text(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for n, text in enumerate(self._before, 1):
            found.setdefault(_said(text), []).append(n)
        return found


def _blocks(new: list[str], old: list[str]) -> Iterator[Block]:
    """What is equal in both, and what stands between that.

    What both begin and end with is compared with nothing else, and then what each has but once, in the order that both
    have it: https://bramcohen.livejournal.com/73318.html. difflib, which compares all with all, gets what is between.
    """
    short = min(len(new), len(old))
    head = next((i for i in range(short) if new[i] != old[i]), short)
    tail = next((i for i in range(short - head) if new[-1 - i] != old[-1 - i]), short - head)
    a, b = len(new) - tail, len(old) - tail
    yield "equal", 0, head, 0, head
    i, k = head, head
    for at, there in _in_both_orders(_once(new, head, a), _once(old, head, b)):
        if at < i:
            continue  # it goes with the one before
        j, m = at, there
        while j > i and m > k and new[j - 1] == old[m - 1]:
            j, m = j - 1, m - 1
        yield from _between(new, old, (i, j, k, m))
        i, k = at, there
        while i < a and k < b and new[i] == old[k]:
            i, k = i + 1, k + 1
        yield "equal", j, i, m, k
    yield from _between(new, old, (i, a, k, b))
    yield "equal", a, len(new), b, len(old)


def _between(new: list[str], old: list[str], place: tuple[int, int, int, int]) -> Iterator[Block]:
    i, j, k, m = place
    if i == j or k == m or set(new[i:j]).isdisjoint(old[k:m]):
        yield "other", i, j, k, m
        return
    for kind, *at in difflib.SequenceMatcher(None, new[i:j], old[k:m], autojunk=False).get_opcodes():
        yield kind, at[0] + i, at[1] + i, at[2] + k, at[3] + k


def _once(lines: list[str], first: int, stop: int) -> dict[str, int]:
    """The lines that stand there but once, and where."""
    found: dict[str, int] = {}
    for i in range(first, stop):
        found[lines[i]] = i if lines[i] not in found else -1
    return {line: i for line, i in found.items() if i >= 0}


def _in_both_orders(new: dict[str, int], old: dict[str, int]) -> list[tuple[int, int]]:
    """The most of the lines in both that stand in the same order: the longest increasing subsequence."""
    ends: list[int] = []  # the lowest place in which a row of each length ends
    last: list[tuple[int, int, Any]] = []  # that row: its last line, and the row before it
    for line, i in new.items():
        k = old.get(line)
        if k is None:
            continue
        n = bisect_left(ends, k)
        row = i, k, last[n - 1] if n else None
        ends[n : n + 1], last[n : n + 1] = [k], [row]
    found: list[tuple[int, int]] = []
    at: Any = last[-1] if last else None
    while at is not None:
        i, k, at = at
        found.append((i, k))
    return found[::-1]


def _said(line: str) -> str:
    return OWN.sub("", line.strip()) if "self." in line else line.strip()


def _words(line: str) -> frozenset[str]:
    return frozenset(WORD.findall(_said(line))) - OF_EVERY_LOOP

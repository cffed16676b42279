"""Which line of the old text a line of the new one was."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from functools import cache

from .facts.text import lines_of

OWN = re.compile(r"\bself\.")


def line_map(new: str, old: str) -> Callable[[int], int]:
    """A function from lines of the new text to those of the old one.

    A line that a method has now is the one line that says the same, but for its margin and `self.`, wherever it stood.
    """

    @cache
    def lines() -> list[str]:
        return lines_of(new)

    @cache
    def blocks() -> Sequence[tuple[str, int, int, int, int]]:
        return difflib.SequenceMatcher(None, lines(), lines_of(old), autojunk=False).get_opcodes()

    @cache
    def said() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for n, text in enumerate(lines_of(old), 1):
            found.setdefault(_said(text), []).append(n)
        return found

    def line(n: int) -> int:
        for kind, a, b, c, d in blocks():
            if a <= n - 1 < b:
                same = [] if kind == "equal" else said().get(_said(lines()[n - 1]), [])
                return same[0] if len(same) == 1 else min(c + (n - 1 - a), max(d - 1, c)) + 1
        return n

    return line


def _said(line: str) -> str:
    return OWN.sub("", line.strip())

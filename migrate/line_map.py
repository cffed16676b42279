"""Which line of the old text a line of the new one was."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from functools import cache

from .facts.text import lines_of


def line_map(new: str, old: str) -> Callable[[int], int]:
    """A function from lines of the new text to those of the old one."""

    @cache
    def blocks() -> Sequence[tuple[str, int, int, int, int]]:
        return difflib.SequenceMatcher(None, lines_of(new), lines_of(old), autojunk=False).get_opcodes()

    def line(n: int) -> int:
        for _, a, b, c, d in blocks():
            if a <= n - 1 < b:
                return min(c + (n - 1 - a), max(d - 1, c)) + 1
        return n

    return line

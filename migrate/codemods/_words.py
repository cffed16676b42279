"""What libcst takes for a word too many: `return(a if b else c)` and `not(lambda: 1)` are Python, and are read."""

from __future__ import annotations

from typing import Any

import libcst as cst


def read_them() -> None:
    """Has these kinds of expressions asked for their own parentheses first, as all others are."""
    for kind in (cst.IfExp, cst.Lambda):
        _beside_words(kind)


def _beside_words(kind: Any) -> None:
    inside = kind._safe_to_use_with_word_operator

    def safe(self: Any, position: Any) -> bool:
        return bool(self.lpar) or bool(inside(self, position))

    kind._safe_to_use_with_word_operator = safe

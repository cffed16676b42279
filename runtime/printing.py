"""Printing once: rank 0 prints, the others keep silent."""

from __future__ import annotations

from typing import Any

from .environment import place


def rank_zero_print(*values: Any, **options: Any) -> None:
    """`print`, on rank 0 only; before the processes have met, too."""
    if place().rank == 0:
        print(*values, **options)

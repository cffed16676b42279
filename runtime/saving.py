"""Saving once: rank 0 writes, and what stands at the path is whole or was there before."""

from __future__ import annotations

from typing import Any

from .checkpoint.write import write_atomically
from .environment import place


def rank_zero_save(obj: Any, path: Any, **options: Any) -> None:
    """`torch.save`, on rank 0 only. A path is written beside and renamed; an open file is written as it is."""
    if place().rank != 0:
        return
    import torch

    write_atomically(path, lambda file: torch.save(obj, file, **options))

"""Saving once: rank 0 writes, and what stands at the path is whole or was there before."""

from __future__ import annotations

from typing import Any

from .checkpoint.write import write_atomically
from .environment import place


def rank_zero_save(obj: Any, path: Any, **options: Any) -> None:
    """`torch.save`, on rank 0 only. A path is written beside and renamed; an open file is written as it is.

    All ranks have to call it, as a script's own save is reached by all: none goes on, to read the file say, before it
    is there.
    """
    import torch

    if place().rank == 0:
        write_atomically(path, lambda file: torch.save(obj, file, **options))
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()

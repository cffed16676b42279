"""Writing once: rank 0 writes, and what stands at the path is whole or was there before."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .alike import in_turn, rank_zero_value
from .checkpoint.write import write_atomically
from .environment import place


def rank_zero_save(obj: Any, f: Any, **options: Any) -> None:
    """`torch.save`, by its own names of arguments, on rank 0 only.

    A path is written beside and renamed; an open file is written as it is.
    All ranks have to call it, as a script's own save is reached by all: none goes on, to read the file say, before it
    is there. A rank whose path is another, in a temporary folder or with the time in its name, writes its own file.
    """
    import torch

    named = os.path.abspath(f) if isinstance(f, (str, os.PathLike)) else None
    own = in_turn() and named is not None and not os.path.exists(named)
    if place().rank == 0 or own:
        write_atomically(f, lambda file: torch.save(obj, file, **options))
    if rank_zero_value(named) != named:
        write_atomically(f, lambda file: torch.save(obj, file, **options))
    _wait_for_the_others()


def rank_zero_file(moves: Callable[..., Any]) -> Callable[..., None]:
    """`moves`, which copies or renames a file, on rank 0 only: `rank_zero_file(shutil.copyfile)("last.pt", "best.pt")`.

    All ranks have to call it, and none goes on, to read the file say, before it is there. A rank whose paths are
    others moves its own.
    """

    def moved(*args: Any, **options: Any) -> None:
        paths = [os.path.abspath(p) for p in (*args, *options.values()) if isinstance(p, (str, os.PathLike))]
        if place().rank == 0:
            moves(*args, **options)
        if rank_zero_value(paths) != paths:
            moves(*args, **options)
        _wait_for_the_others()

    return moved


def _wait_for_the_others() -> None:
    import torch

    if in_turn():
        return
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()

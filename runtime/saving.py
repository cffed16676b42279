"""Writing once: rank 0 writes, and what stands at the path is whole or was there before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from .alike import all_have_come, in_turn, in_worker, rank_zero_value
from .checkpoint.write import write_atomically
from .environment import place
from .silent import opens, to_forget

# what takes a file away that the others may still be reading
TAKES_AWAY = (os.remove, os.unlink, os.rmdir, os.removedirs, os.rename, os.renames, os.replace, shutil.rmtree,
              shutil.move)  # fmt: skip


def rank_zero_save(obj: Any, f: Any, **options: Any) -> None:
    """`torch.save`, by its own names of arguments, on rank 0 only.

    A path is written beside and renamed; an open file is written as it is.
    All ranks have to call it, as a script's own save is reached by all: none goes on, to read the file say, before it
    is there. A rank whose path is another, in a temporary folder or with the time in its name, writes its own file.
    """
    import torch

    named = os.path.abspath(f) if isinstance(f, (str, os.PathLike)) else None
    own = in_turn() and named is not None and not os.path.exists(named)
    if place().rank == 0 or own or in_worker():
        write_atomically(f, lambda file: torch.save(obj, file, **options))
    if rank_zero_value(named) != named:
        write_atomically(f, lambda file: torch.save(obj, file, **options))
    _wait_for_the_others()


def rank_zero_file(writes: Callable[..., Any]) -> Callable[..., Any]:
    """`writes`, which copies, renames or writes a file, on rank 0 only: `rank_zero_file(shutil.copyfile)(last, best)`.

    So it is with one that opens a file, in a `with`: `with rank_zero_file(open)(path, "w") as f:`. All ranks have to
    call it, and none goes on, to read the file say, before it is there. A rank whose paths are others writes its own.
    What takes a file away waits until all have come, who may have read it before.
    """
    if opens(writes):
        return partial(_opened, writes)

    def written(*args: Any, **options: Any) -> None:
        mine = place().rank == 0 or in_worker()
        if writes in TAKES_AWAY:
            all_have_come()
        if mine:
            writes(*args, **options)
        paths = _paths(writes, args, options)
        if rank_zero_value(paths) != paths and not mine:
            writes(*args, **options)
        _wait_for_the_others()

    return written


@contextmanager
def _opened(opens: Callable[..., Any], *args: Any, **options: Any) -> Iterator[Any]:
    paths = _paths(opens, args, options)
    mine = rank_zero_value(paths) != paths or place().rank == 0 or in_worker()
    with (opens if mine else to_forget(opens))(*args, **options) as file:
        yield file
    rank_zero_value(None)  # which the others have once rank 0 is here
    _wait_for_the_others()


def _paths(writes: Callable[..., Any], args: tuple, options: dict[str, Any]) -> list[str]:
    """The paths that a call writes: that of a method's own path, or those that it is given."""
    own = getattr(writes, "__self__", None)
    given = [own] if isinstance(own, os.PathLike) else [*args, *options.values()]
    return [os.path.abspath(p) for p in given if isinstance(p, (str, os.PathLike))]


def _wait_for_the_others() -> None:
    import torch

    if in_turn():
        return
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()

"""Printing once, rank 0 only; and the lines of ranks that share a terminal stay whole."""

from __future__ import annotations

import io
import sys
from typing import Any

from .environment import place


def is_global_zero() -> bool:
    """Whether this process is rank 0, which does what only one may do; before the processes have met, too."""
    return place().rank == 0


def is_local_zero() -> bool:
    """Whether this process is the first of its machine, which prepares what each machine has for itself."""
    return place().local_rank == 0


def rank_zero_print(*values: Any, **options: Any) -> None:
    """`print`, on rank 0 only; before the processes have met, too."""
    if place().rank == 0:
        print(*values, **options)


def keep_lines_whole() -> None:
    """Let this process, which is a rank, write a line at once; unbuffered Python (`-u`, as launchers start it) writes
    each part of one.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)

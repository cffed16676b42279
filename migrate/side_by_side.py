"""Files of a large folder, migrated in several processes at once: each as it is where no other file changes it.

The processes are forked, as what is known of a file's project cannot be sent. Without fork one process does all.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

from .cores import idle_cores
from .facts.source import mentions_torch
from .one_file import Migrated, bytes_of

WORTH = 150_000  # bytes of files with torch, about two seconds of work, that pay for starting processes

_work: Callable[[Path], Migrated]


@contextmanager
def side_by_side(
    paths: list[Path], work: Callable[[Path], Migrated], jobs: int | None
) -> Iterator[Callable[[Path], Migrated | None]]:
    """Does the work of each file in `jobs` processes, or as many as pay, while the block asks for what came of one.

    It is told None of a file that nothing was done for, or whose process was killed.
    """
    wanted = jobs or (idle_cores() if sum(map(_size, paths)) > WORTH else 1)
    if wanted < 2 or len(paths) < 2 or "fork" not in multiprocessing.get_all_start_methods():
        yield lambda _: None
        return
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(min(wanted, len(paths)), context, _start, (work,))  # a fork has it, and sends nothing
    try:
        given: dict[Path, Future[Migrated]] = {path: pool.submit(_done, path) for path in paths}

        def what_came_of(path: Path) -> Migrated | None:
            try:
                return given[path].result() if path in given else None
            except BrokenProcessPool:
                return None

        yield what_came_of
    finally:
        pool.shutdown(cancel_futures=True)


def _size(path: Path) -> int:
    data = bytes_of(path)
    return len(data) if mentions_torch(data) else 0


def _start(work: Callable[[Path], Migrated]) -> None:
    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C and ends the others
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _done(path: Path) -> Migrated:
    return _work(path)

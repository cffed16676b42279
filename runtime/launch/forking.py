"""A fork beside torch's own threads: Python before 3.12 may copy a lock that one of them holds.

A process group's thread that drops a tensor makes itself a thread state of Python, under a lock of the interpreter and
without the GIL. Such a Python waits in the new process for that lock before it is made anew, for ever: a loader's
worker never begins, and the run stands still (https://github.com/python/cpython/issues/112275).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

MENDED = (3, 12)
PREFIX = "pt_"  # of the names that torch gives its threads: pt_gloo_runloop
LIMIT, TICK = 0.5, 0.001  # seconds: in all, and in which a thread that waited for the GIL has got it
THREADS = Path("/proc/self/task")


def fork_at_rest() -> None:
    """Every fork of this process waits until torch's threads rest, where it matters."""
    if sys.platform == "linux" and sys.version_info < MENDED and THREADS.is_dir():
        os.register_at_fork(before=wait_for_rest)


def wait_for_rest() -> None:
    """Until no thread of torch's has run for a moment; not for ever, since a fork that goes wrong is rare."""
    deadline = time.monotonic() + LIMIT
    before = resting()
    while before != {} and time.monotonic() < deadline:
        time.sleep(TICK)
        now = resting()
        if now is not None and now == before:
            return
        before = now


def resting() -> dict[str, str] | None:
    """How often each of torch's threads has been switched to; None where one of them runs."""
    found = {}
    for thread in os.listdir(THREADS):
        try:
            status = (THREADS / thread / "status").read_text()
        except OSError:  # it has ended
            continue
        if status.startswith(f"Name:\t{PREFIX}"):
            if "\nState:\tS" not in status:
                return None
            found[thread] = status[status.index("\nvoluntary_ctxt_switches") :]
    return found

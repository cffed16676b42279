"""Ctrl-C where the main thread cannot hear it: it waits inside of a collective, whose C++ looks for no signals.

What is heard goes as Python would have it go. What is not heard within a few seconds ends the job.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

PATIENCE = 5.0  # seconds in which the main thread has to come to a line of Python
_heard_at = 0.0  # by the clock that only goes forward
_ending = threading.Event()


def listen(end: Callable[[], None]) -> None:
    """Once a process, in the main thread: `end` ends what this process has started, before it ends itself."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # the script has its own way
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _hear)
    os.register_at_fork(after_in_child=_deafen)
    threading.Thread(target=_listen, args=(reading, end), daemon=True, name="ptmigrate-interrupts").start()


def _hear(number: int, frame: FrameType | None) -> None:
    global _heard_at
    if _ending.is_set():  # the collective came back, since its peers are gone: the end is on its way
        time.sleep(PATIENCE)
    _heard_at = time.monotonic()
    signal.default_int_handler(number, frame)


def _deafen() -> None:
    """A loader's worker gets the terminal's Ctrl-C for itself."""
    if signal.getsignal(signal.SIGINT) is _hear:
        signal.set_wakeup_fd(-1)


def _listen(reading: int, end: Callable[[], None]) -> None:
    while signals := os.read(reading, 64):
        if signal.SIGINT not in signals or _is_heard(time.monotonic()):
            continue
        if signal.getsignal(signal.SIGINT) is _hear:
            _ending.set()
            print("interrupted while it waited for other ranks; they were ended.", file=sys.stderr, flush=True)
            end()
            os._exit(128 + signal.SIGINT)


def _is_heard(now: float) -> bool:
    """Does the main thread hear, or has it just heard, what came `now`?"""
    while time.monotonic() < now + PATIENCE:
        if _heard_at > now - PATIENCE:
            return True
        time.sleep(0.05)
    return False

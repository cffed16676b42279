"""In every rank: die with the launcher, and let the first failing rank speak alone.

When one rank fails, the others soon fail too, because their peer is gone. They wait silently for their end, so that
the terminal shows the traceback that matters.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

from .. import environment
from ..errors import ConfigurationError

ExceptHook = Callable[[type[BaseException], BaseException, "TracebackType | None"], object]
PATIENCE = 15.0  # seconds in which the launcher ends a rank whose peer has gone; then it speaks for itself
LOST_PEER = ("connection closed by peer", "connection reset", "broken pipe", "connection refused", "socket closed")
_SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)

_watched = False
failed_at = ""  # where the trainer was when it failed: "epoch 2, batch 117"


def watch(rank: int, previous: ExceptHook) -> None:
    """Install both, once a process. `previous`: the hook that shows tracebacks (torch replaces it when groups are
    made).
    """
    global _watched
    if _watched:
        return
    _watched = True
    if environment.option("launcher"):
        die_with_parent()

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if is_lost_peer(error):
            time.sleep(PATIENCE)
        if not issubclass(kind, (KeyboardInterrupt, ConfigurationError)):
            print(f"rank {rank} stopped{' at ' + failed_at if failed_at else ''}:", file=sys.stderr)
        previous(kind, error, trace)
        sys.stderr.flush()
        leave_at_once()

    sys.excepthook = hook


def is_lost_peer(error: BaseException) -> bool:
    """Does the error say no more than that another rank is gone?"""
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in LOST_PEER)


def leave_at_once() -> None:
    """End without atexit work: destroying a process group whose peers hang could wait for them."""
    sys.stdout.flush()
    os._exit(1)


def die_with_parent() -> None:
    """Ask the kernel for SIGTERM when the parent dies; elsewhere than Linux, look for it every second."""
    parent = os.getppid()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
            if os.getppid() == parent != 1:
                return
    threading.Thread(target=_look_for, args=(parent,), daemon=True).start()


def _look_for(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)

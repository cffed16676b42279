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

import torch.distributed as dist

from .. import environment
from ..errors import ConfigurationError, RanksDiffer
from . import forking

ExceptHook = Callable[[type[BaseException], BaseException, "TracebackType | None"], object]
PATIENCE = 15.0  # seconds in which the launcher ends a rank whose peer has gone; then it speaks for itself
MOMENT = 3.0  # seconds in which the launcher ends the others of a rank that failed
LOST_PEER = ("connection closed by peer", "connection reset", "broken pipe", "connection refused", "socket closed")
ARRIVED = "ptmigrate/arrived"
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
        if _launcher_is_gone():
            leave_at_once()
    let_children_die_too()
    forking.fork_at_rest()

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if is_lost_peer(error):
            tell_who_arrived(trace)
            time.sleep(PATIENCE)
        if rank and isinstance(error, RanksDiffer):
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


def note_arrival() -> None:
    """This rank has come to the end of its script."""
    with contextlib.suppress(RuntimeError):  # the store may be gone
        dist.distributed_c10d._get_default_store().set(f"{ARRIVED}/{dist.get_rank()}", "")


def tell_who_arrived(trace: TracebackType | None) -> None:
    """End here where the peer that is gone has come to the end of its script, which nobody else would tell."""
    from .stuck import line_at

    through: list[int] = []
    with contextlib.suppress(RuntimeError, ValueError):
        store = dist.distributed_c10d._get_default_store()
        through = [rank for rank in range(dist.get_world_size()) if store.check([f"{ARRIVED}/{rank}"])]
    if through:
        time.sleep(MOMENT)
        ranks = f"rank{'s' if len(through) > 1 else ''} {', '.join(map(str, through))}"
        told = f"{ranks} came to the end of the script, where rank {dist.get_rank()} still waits for all of them:"
        print(f"RuntimeError: {told} {line_at(trace)}", file=sys.stderr)
        leave_at_once()


def leave_at_once() -> None:
    """End without atexit work: destroying a process group whose peers hang could wait for them."""
    sys.stdout.flush()
    os._exit(1)


def die_with_parent(parent: int | None = None) -> None:
    """Ask the kernel for SIGTERM when the parent dies; elsewhere than Linux, look for it every second."""
    parent = parent or os.getppid()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
            if os.getppid() == parent != 1:
                return
    threading.Thread(target=_look_for, args=(parent,), daemon=True).start()


def _launcher_is_gone() -> bool:
    """Whether it ended while this rank still read its imports, of which the kernel tells nobody."""
    pid = environment.option("launcher_pid")
    if pid is None or sys.platform == "win32":
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def let_children_die_too() -> None:
    """Workers of loaders, and what else this rank's main thread forks, do not outlive it, however it ends."""
    rank, forking = os.getpid(), threading.local()

    def before() -> None:
        forking.by_main = os.getpid() == rank and threading.current_thread() is threading.main_thread()

    def in_child() -> None:
        if forking.by_main:  # the kernel's signal comes when the forking thread ends
            die_with_parent(rank)

    if sys.platform == "linux":
        os.register_at_fork(before=before, after_in_child=in_child)


def _look_for(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)

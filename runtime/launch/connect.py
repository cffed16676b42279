"""Ranks meet: the default process group, and a gloo group of our own for what is on the CPU."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from .. import environment
from ..environment import PREFIX
from ..errors import ConfigurationError
from ..settings import Settings
from ..strategies.base import Strategy

BACKENDS = {"cpu": "gloo", "cuda": "nccl", "mps": "gloo", "tpu": "gloo"}
MEETING_LIMIT = timedelta(minutes=5)
_group: Any = None


def connect(settings: Settings, strategy: Strategy) -> Any:
    """The gloo group of all ranks; the first call starts the other processes, if no launcher did, and meets them."""
    global _group
    if _group is not None and dist.is_initialized():
        _check_size(settings)
        return _group
    from . import stuck, watch

    if not environment.launched():
        strategy.start_processes(settings)
    shown_by = sys.excepthook
    if not dist.is_initialized():
        try:
            strategy.init_group(settings)
        finally:  # an engine may refuse what it hears when the ranks have met
            atexit.register(_leave)
    watch.watch(environment.place().rank, shown_by)
    _check_size(settings)
    _group = dist.new_group(backend="gloo", timeout=MEETING_LIMIT)
    stuck.watch_for_waiting(settings.nodes)
    return _group


def init_group(settings: Settings, name: str | None = None, timeout: timedelta | None = None) -> None:
    """The default process group, from the environment variables of the launcher. `name`: its backend."""
    dist.init_process_group(name or backend(settings.kind), timeout=timeout or MEETING_LIMIT)


def backend(kind: str) -> str:
    """nccl on GPUs, gloo elsewhere, unless an environment variable names another."""
    return os.environ.get(PREFIX + "BACKEND") or os.environ.get("PL_TORCH_DISTRIBUTED_BACKEND") or BACKENDS[kind]


def _check_size(settings: Settings) -> None:
    if dist.get_world_size() != settings.world_size:
        raise ConfigurationError(
            f"{settings.world_size} processes were asked for, and this one already runs among {dist.get_world_size()}"
        )


def _leave() -> None:
    """Close device groups, and let gloo's threads finish what they hold before the interpreter goes."""
    if not dist.is_initialized():
        return
    from .watch import note_arrival

    note_arrival()
    if dist.get_backend() != "gloo":
        dist.destroy_process_group()
    _settle()


def _settle(limit: float = 2.0, calm: int = 3) -> None:
    """Wait until all other threads of this process sleep (on Linux; elsewhere a moment).

    A gloo thread that still has to drop the tensors of the last message, and does so while the interpreter ends, is
    unwound by it: std::terminate, exit code -6.
    """
    tasks, quiet, deadline = Path("/proc/self/task"), 0, time.monotonic() + limit
    while quiet < calm and time.monotonic() < deadline:
        time.sleep(0.01)
        quiet = quiet + 1 if not tasks.is_dir() or not _running(tasks) else 0


def _running(tasks: Path) -> bool:
    """Does a thread other than this one run, or wait for a core?"""
    for task in tasks.iterdir():
        if task.name != str(threading.get_native_id()):
            with contextlib.suppress(OSError):
                if (task / "stat").read_text().rpartition(")")[2].split()[0] == "R":
                    return True
    return False

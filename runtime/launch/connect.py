"""Ranks meet: the default process group, and a gloo group of our own for what is on the CPU."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from .. import environment
from ..environment import PREFIX
from ..errors import ConfigurationError
from ..settings import Settings

BACKENDS = {"cpu": "gloo", "cuda": "nccl", "mps": "gloo", "tpu": "gloo"}
MEETING_LIMIT = timedelta(minutes=5)
_group: Any = None


def connect(settings: Settings) -> Any:
    """The gloo group of all ranks; the first call starts the other processes, if no launcher did, and meets them."""
    global _group
    if _group is not None and dist.is_initialized():
        _check_size(settings)
        return _group
    from . import script, watch

    if not environment.launched():
        script.start_peers(settings)
    shown_by = sys.excepthook
    if not dist.is_initialized():
        dist.init_process_group(backend(settings.kind), timeout=MEETING_LIMIT)
        atexit.register(_leave)
    watch.watch(environment.place().rank, shown_by)
    _check_size(settings)
    _group = dist.new_group(backend="gloo", timeout=MEETING_LIMIT)
    for group in (_group, dist.group.WORLD):
        _keep_for_ever(group)
    return _group


def backend(kind: str) -> str:
    """nccl on GPUs, gloo elsewhere, unless an environment variable names another."""
    return os.environ.get(PREFIX + "BACKEND") or os.environ.get("PL_TORCH_DISTRIBUTED_BACKEND") or BACKENDS[kind]


def _check_size(settings: Settings) -> None:
    if dist.get_world_size() != settings.world_size:
        raise ConfigurationError(
            f"{settings.world_size} processes were asked for, and this one already runs among {dist.get_world_size()}"
        )


def _leave() -> None:
    """Close device groups. Gloo groups are left to the end of the process, on purpose.

    A gloo group that is destroyed while its own thread hears that a peer has left can end in std::terminate.
    """
    if not dist.is_initialized():
        return
    if dist.get_backend() != "gloo":
        dist.destroy_process_group()


def _keep_for_ever(group: Any) -> None:
    """One reference more than anybody will give back, so that the interpreter's end does not destroy the group."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))

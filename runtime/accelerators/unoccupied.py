"""`auto_select_gpus`: GPUs that can be used, also where a device takes one process only (exclusive mode)."""

from __future__ import annotations

import os
from typing import Any

from .. import environment
from ..errors import ConfigurationError
from . import machine
from .parse import parse_gpus

PICKED = environment.PREFIX + "PICKED_GPUS"  # rank 0's choice, for the processes that it starts


def unoccupied(gpus: Any) -> Any:
    """The first `gpus` (a count; -1: all there are) that take a tensor. Anything else is returned as it is.

    Raises ConfigurationError where fewer are free.
    """
    if isinstance(gpus, bool) or not isinstance(gpus, int):
        return gpus
    if environment.launched():
        picked = os.environ.get(PICKED)
        return [int(number) for number in picked.split(",")] if picked else gpus
    free: list[int] = []
    for number in range(machine.count("cuda") or 0):
        if machine.is_free(number):
            free.append(number)
        if len(free) == gpus:
            break
    if gpus > len(free) or not free:
        there = machine.count("cuda") or 0
        raise ConfigurationError(f"gpus={gpus!r} with auto_select_gpus: {len(free)} of {there} GPUs are free")
    os.environ[PICKED] = ",".join(map(str, free))
    return parse_gpus(free)

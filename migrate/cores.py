"""How many processes are worth starting."""

from __future__ import annotations

import os


def idle_cores() -> int:
    """How many cores have nothing else to do, at least one: on a busy machine processes only wait for each other."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):
        load = 0.0
    return max(1, cores - int(load))

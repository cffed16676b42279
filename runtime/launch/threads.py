"""Processes that share a machine share its cores."""

from __future__ import annotations

import os


def thread_variables(processes: int) -> dict[str, str]:
    """OMP_NUM_THREADS for each of `processes`, unless the user has set it."""
    if "OMP_NUM_THREADS" in os.environ:
        return {}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"OMP_NUM_THREADS": str(max(1, cores // processes))}

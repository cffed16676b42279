"""TPU cores through torch_xla: is it here, does it load, and how many cores are there?

PJRT_DEVICE=CPU makes torch_xla run the same path on the CPU, one device a process, on as many processes as asked for.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any

from ..installed import installed

INSTALL = (
    "each torch_xla is built for the torch of its own number, so it wants an environment of its own: "
    "pip install torch==2.9.0 torch_xla==2.9.0 (on a TPU 'torch_xla[tpu]==2.9.0'; in this project's sources: make xla)"
)


def on_cpu() -> bool:
    """Has the user chosen PJRT's CPU device?"""
    return os.environ.get("PJRT_DEVICE", "").upper() == "CPU"


def cores() -> int | None:
    """How many TPU cores this machine has; None on PJRT's CPU device, where any number of processes will do."""
    why = absent()
    return (None if on_cpu() else _cores()) if why is None else 0


@cache
def absent() -> str | None:
    """Why there are none, or None. Looks without starting the device, which belongs to the processes that run on it."""
    if not installed("torch_xla"):
        return f"torch_xla is not installed; {INSTALL}"
    os.environ["PJRT_SELECT_DEFAULT_DEVICE"] = "0"  # else importing it chooses the CPU where there is no TPU
    try:
        import torch_xla  # noqa: F401
    except (ImportError, OSError) as error:
        return f"torch_xla does not load with torch {_torch()} ({error}); {INSTALL}"
    finally:
        del os.environ["PJRT_SELECT_DEFAULT_DEVICE"]
    if on_cpu() or _cores():
        return None
    return "this machine has no TPU; the environment variable PJRT_DEVICE=CPU runs the same on the CPU"


def running() -> Any:
    """The engine, where this process uses an XLA device (it is loaded then), else None."""
    return sys.modules.get(f"{__package__.rpartition('.')[0]}.engines.xla")


def _cores() -> int:
    """The chips, each one core to a process."""
    from torch_xla._internal import tpu

    return tpu.num_available_chips()


def _torch() -> str:
    import torch

    return torch.__version__

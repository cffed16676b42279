"""What devices this machine has."""

from __future__ import annotations

import os

from . import tpu

KINDS = ("cpu", "cuda", "mps", "tpu")


def count(kind: str) -> int | None:
    """How many devices of `kind` there are; None where any number of processes will do (the CPU, PJRT's too)."""
    if kind == "cpu":
        return None
    import torch

    if kind == "cuda":
        return torch.cuda.device_count()
    if kind == "mps":
        return int(torch.backends.mps.is_available())
    return tpu.cores()


def present() -> str:
    """The kind that `accelerator="auto"` means here."""
    for kind in ("cuda", "mps"):
        if count(kind):
            return kind
    return "tpu" if os.environ.get("PJRT_DEVICE", "").upper() == "TPU" and count("tpu") else "cpu"


def is_free(number: int) -> bool:
    """Does this GPU take a tensor of ours? In exclusive mode it refuses while another process has it."""
    import torch

    try:
        torch.ones(1, device=torch.device("cuda", number))
    except RuntimeError:
        return False
    return True

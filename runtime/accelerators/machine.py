"""What devices this machine has."""

from __future__ import annotations

KINDS = ("cpu", "cuda", "mps", "tpu")


def count(kind: str) -> int | None:
    """How many devices of `kind` there are; None where any number of processes will do (the CPU)."""
    if kind == "cpu":
        return None
    import torch

    if kind == "cuda":
        return torch.cuda.device_count()
    if kind == "mps":
        return int(torch.backends.mps.is_available())
    try:
        import torch_xla.runtime

        return torch_xla.runtime.global_runtime_device_count()
    except ImportError:
        return 0


def present() -> str:
    """The kind that `accelerator="auto"` means here."""
    for kind in ("cuda", "mps"):
        if count(kind):
            return kind
    return "cpu"


def is_free(number: int) -> bool:
    """Does this GPU take a tensor of ours? In exclusive mode it refuses while another process has it."""
    import torch

    try:
        torch.ones(1, device=torch.device("cuda", number))
    except RuntimeError:
        return False
    return True

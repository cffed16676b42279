"""`ptrun --doctor`: what this machine has, and what would be chosen because of it."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from .installed import installed

ENGINES = ("torch", "fairscale", "deepspeed", "horovod", "torch_xla", "bagua", "tensorboard", "lightning")
CLUSTER = (
    "SLURM_JOB_ID",
    "LSB_JOBID",
    "PBS_JOBID",
    "KUBERNETES_SERVICE_HOST",
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "OMP_NUM_THREADS",
)


def report() -> str:
    """Lines of `name: what was found`."""
    lines = [f"python: {platform.python_version()} on {platform.platform()}", f"cpu cores: {os.cpu_count()}"]
    lines += [f"{name}: {found(name)}" for name in ENGINES]
    lines += devices()
    around = [f"{name}={os.environ[name]}" for name in CLUSTER if name in os.environ]
    lines.append(f"cluster environment: {', '.join(around) or 'none'}")
    return "\n".join(lines)


def found(name: str) -> str:
    if not installed(name):
        return "not installed"
    try:
        return version(name)
    except PackageNotFoundError:
        return "installed, version unknown"


def devices() -> list[str]:
    """The devices, and what `auto` means with its reason."""
    if not installed("torch"):
        return ["devices: torch is not installed, so none can be used: pip install 'ptmigrate[runtime]'"]
    import torch

    from .accelerators import count, present, tpu

    lines = [f"gpu {i}: {torch.cuda.get_device_name(i)}" for i in range(count("cuda") or 0)]
    lacking = tpu.absent()
    where = "PJRT's CPU device (PJRT_DEVICE=CPU)" if tpu.on_cpu() else f"{count('tpu')} cores"
    lines.append(f"tpu: {where if lacking is None else lacking}")
    kind = present()
    why = f"{count(kind)} found" if kind != "cpu" else "no GPU was found"
    lines.append(f"accelerator auto: {kind} ({why})")
    backend = "nccl" if kind == "cuda" else "gloo"
    lines.append(f"strategy auto: single on one device, ddp on several (backend {backend}), xla on TPU cores")
    return lines

"""The one name that a thing of torch has here, whichever of its modules it was imported from."""

from __future__ import annotations

from functools import lru_cache

# Names that torch's documentation knows by another.
_RENAMED = {
    "torch.autocast": "torch.amp.autocast",
    "torch.autograd.no_grad": "torch.no_grad",
    "torch.autograd.enable_grad": "torch.enable_grad",
    "torch.autograd.set_grad_enabled": "torch.set_grad_enabled",
    "torch.autograd.inference_mode": "torch.inference_mode",
    "torch.nn.parallel.DataParallel": "torch.nn.DataParallel",
    "torch.autograd.variable.Variable": "torch.autograd.Variable",
    "torch.multiprocessing.spawn.spawn": "torch.multiprocessing.spawn",
    "torch.random.manual_seed": "torch.manual_seed",
    "torch.random.seed": "torch.seed",
}

# Private homes of public names: a prefix, and what it is called from outside.
_HOMES = (
    ("torch.nn.parallel.distributed.", "torch.nn.parallel."),
    ("torch.nn.parallel.data_parallel.", "torch.nn."),
    ("torch.nn.parameter.", "torch.nn."),
    ("torch.utils.data.dataloader.", "torch.utils.data."),
    ("torch.utils.data.dataset.", "torch.utils.data."),
    ("torch.utils.data.sampler.", "torch.utils.data."),
    ("torch.utils.data.distributed.", "torch.utils.data."),
    ("torch.utils.tensorboard.writer.", "torch.utils.tensorboard."),
    ("torch.autograd.grad_mode.", "torch."),
    ("torch.amp.autocast_mode.", "torch.amp."),
    ("torch.amp.grad_scaler.", "torch.amp."),
    ("torch.cuda.amp.autocast_mode.", "torch.cuda.amp."),
    ("torch.cuda.amp.grad_scaler.", "torch.cuda.amp."),
    ("torch.cuda.random.", "torch.cuda."),
    ("torch.cuda.memory.", "torch.cuda."),
    ("torch.distributed.distributed_c10d.", "torch.distributed."),
    ("torch.nn.utils.clip_grad.", "torch.nn.utils."),
    ("torch.serialization.", "torch."),
    ("torch.functional.", "torch."),
    ("torch._tensor.", "torch."),
)

# Modules of torch.optim that are public themselves; every other one only holds one optimizer.
_OPTIM_MODULES = ("lr_scheduler", "swa_utils")


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """`torch.nn.modules.linear.Linear` and `torch.nn.Linear` are both `torch.nn.Linear`."""
    if not name.startswith("torch."):
        return name
    if name.startswith("torch.nn.modules."):
        name = "torch.nn." + name.rpartition(".")[2]
    elif name.startswith("torch.optim."):
        parts = name.split(".")
        if len(parts) == 4 and parts[2].islower() and parts[2] not in _OPTIM_MODULES:
            name = f"torch.optim.{parts[3]}"
    else:
        for home, public in _HOMES:
            if name.startswith(home):
                name = public + name[len(home) :]
                break
    return _RENAMED.get(name, name)

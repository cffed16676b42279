"""What a loop that is kept needs beside `Runtime.setup`: one handle for all its files, its own device, and equal ranks.

A kept loop computes every batch whole on every rank, so that it is the same run on any number of them; what it draws at
random has to be the same too.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from . import environment

if TYPE_CHECKING:
    from .handle import Runtime

_shared: Runtime | None = None


def shared() -> Runtime:
    """The one Runtime of this process: every file of a migrated project asks for it here."""
    global _shared
    if _shared is None:
        from .handle import Runtime

        _shared = Runtime()
        if _shared.world_size > 1:
            adopt_random_state(_shared)
    return _shared


def own_device(runtime: Runtime, chosen: Any) -> torch.device:
    """The device of this rank where the script chose an accelerator (a number is one), the CPU where it chose that."""
    if isinstance(chosen, int):
        return runtime.strategy.own_device()
    if environment.option("accelerator") is None and torch.device(chosen).type == "cpu":
        return torch.device("cpu")
    return runtime.strategy.own_device()


def follow(runtime: Runtime, optimizer: Any, models: tuple[torch.nn.Module, ...]) -> Any:
    """Start the models, and what else the optimizer has, from rank 0's weights and average their gradients in
    `Runtime.backward`; returns the optimizer.
    """
    runtime.strategy.check({"kept": True})
    if runtime.world_size > 1:
        for model in (*models, _Others(runtime, optimizer, models)):
            if not any(known is model for known in runtime._models):
                runtime.strategy.follow(model)
                runtime._models.append(model)
    runtime.strategy.follow_optimizer(optimizer)
    return optimizer


class _Others(torch.nn.Module):
    """What an optimizer is given that is of no model which the runtime knows."""

    def __init__(self, runtime: Runtime, optimizer: Any, models: tuple[torch.nn.Module, ...]):
        super().__init__()
        known = {id(p) for model in (*runtime._models, *models) for p in model.parameters()}
        given = [p for group in getattr(optimizer, "param_groups", ()) for p in group["params"]]
        self._tensors = [p for p in given if id(p) not in known]

    def parameters(self, recurse: bool = True) -> Iterator[torch.nn.Parameter]:
        return iter(self._tensors)


def adopt_random_state(runtime: Runtime) -> None:
    """Give every rank rank 0's generators: torch's, Python's and (when it is loaded) NumPy's."""
    import torch.distributed as dist

    runtime.connect()
    numpy = sys.modules.get("numpy")
    state: list[Any] = [
        torch.get_rng_state(),
        random.getstate(),
        numpy.random.get_state() if numpy is not None else None,
    ]
    dist.broadcast_object_list(state, 0, group=runtime.group)
    torch.set_rng_state(state[0])
    random.setstate(state[1])
    if numpy is not None and state[2] is not None:
        numpy.random.set_state(state[2])

"""One process a device, gradients averaged while backward runs (torch's DistributedDataParallel).

Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, VLDB 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parallel import DistributedDataParallel

from .averaging import GradientAverager
from .base import Strategy
from .registry import register

if TYPE_CHECKING:
    from ..module import Module


class TrainingStep(torch.nn.Module):
    """`training_step`, and its `_step_end`, as a forward, which is where DistributedDataParallel looks.

    `anchor` is a parameter that no step uses: it lets DDP take modules whose parameters are all frozen, and spares
    the warning that looking for unused parameters found none.
    """

    def __init__(self, module: Module, step: Callable[..., Any]):
        super().__init__()
        self.module, self.step = module, step
        self.anchor = torch.nn.Parameter(torch.zeros(1, device=module.device))

    def forward(self, *args: Any) -> Any:
        return self.step(*args)

    def train(self, mode: bool = True) -> TrainingStep:
        """Which submodules train is the user's affair; DDP calls this on the whole tree."""
        return self


@register("ddp")
class DDPStrategy(Strategy):
    """Automatic optimization runs through DDP; kept loops and manual optimization through GradientAverager."""

    needs_processes = True

    def __init__(self) -> None:
        self._wrapped: DistributedDataParallel | None = None
        self._averager: GradientAverager | None = None

    def wrap(self, module: Module) -> Callable[..., Any]:
        device = self.runtime.device
        self._wrapped = DistributedDataParallel(
            TrainingStep(module, self.step(module, "training_step")),
            device_ids=None if device.type == "cpu" else [device],
            find_unused_parameters=True,
        )
        return self._wrapped

    @property
    def averager(self) -> GradientAverager:
        if self._averager is None:
            self._averager = GradientAverager(self.runtime.world_size, self.runtime.group)
        return self._averager

    def follow(self, module: torch.nn.Module) -> None:
        self.averager.follow(module)

    def backward(self, loss: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        loss.backward(*args, **kwargs)
        if self._wrapped is None:
            self.averager.average()

    def no_sync(self) -> AbstractContextManager:
        if self._wrapped is not None:
            return self._wrapped.no_sync()
        return self._averager.paused() if self._averager is not None else nullcontext()

    def teardown(self) -> None:
        self._wrapped = None
        if self._averager is not None:
            self._averager.release()
            self._averager = None

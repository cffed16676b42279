"""TPU cores, or PJRT's CPU device, through torch_xla: one process a core, on one and more.

Operations are recorded and run together, compiled by XLA, when a batch ends or a value is read. Suhan et al.,
LazyTensor: combining eager execution with domain-specific compilers, arXiv:2102.13267.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.distributed as dist

from ..accelerators import tpu
from ..collectives import on_host
from ..errors import ConfigurationError
from .averaging import GradientAverager
from .base import Strategy
from .ddp import TrainingStep
from .needs import Package
from .registry import register
from .spawned import InOwnProcesses

if TYPE_CHECKING:
    from ..module import Module
    from ..settings import Settings
    from ..trainer import Trainer


@register("xla")
class XLAStrategy(Strategy):
    """Gradients are averaged when backward returns: on the devices where XLA joins the processes, else on the host.

    Batches are recorded one at a time, each with the step of its optimizer; what accumulates or evaluates ends where
    the next batch begins. Checkpoints hold CPU tensors, so that they load anywhere.
    """

    packages = (Package("torch_xla", tpu.INSTALL),)
    only_on = "tpu"
    refuses: ClassVar[Mapping[str, str]] = {
        "16": "XLA devices compute in bfloat16, which needs no loss scaling; use precision='bf16'",
    }

    def __init__(self) -> None:
        self._averager: GradientAverager | None = None
        self._hooks: list[Any] = []

    # -- processes ------------------------------------------------------------------------------------------------

    def init_group(self, settings: Settings) -> None:
        """On gloo: batches are divided, metrics and checkpoints gathered on the host."""
        from ..launch.connect import init_group

        init_group(settings)

    def use_device(self) -> None:
        from ..engines import xla

        place = self.runtime.place
        xla.start(place.rank, place.local_rank, place.local_world_size)

    def own_device(self) -> torch.device:
        """A script that moves its models itself does so before it hands over their optimizers."""
        from ..engines import xla

        self.runtime.connect()
        xla.keep_parameters(True)
        return self.runtime.device

    # -- setting up a run -----------------------------------------------------------------------------------------

    def place(self, module: torch.nn.Module) -> None:
        from ..engines import xla

        xla.keep_parameters(True)
        try:
            module.to(self.runtime.device)
        finally:
            xla.keep_parameters(False)

    def setup_optimizers(self, module: Module, optimizers: list[Any]) -> list[Any]:
        for optimizer in optimizers:
            self.follow_optimizer(optimizer)
        return optimizers

    def follow_optimizer(self, optimizer: Any) -> None:
        """A batch ends with its step."""
        from ..engines import xla

        xla.keep_parameters(False)
        if any(p.device.type != "xla" for group in optimizer.param_groups for p in group["params"]):
            raise ConfigurationError(
                f"{type(optimizer).__name__} holds parameters that are not on the device: on TPUs a model's parameters "
                "become others when they are moved, so make the optimizer afterwards"
            )
        if hasattr(optimizer, "register_step_post_hook"):
            self._hooks.append(optimizer.register_step_post_hook(lambda *_: xla.sync()))

    def step(self, module: Module, name: str) -> Callable[..., Any]:
        from ..engines import xla

        step = super().step(module, name)

        def recorded(*args: Any) -> Any:
            xla.sync()
            return step(*args)

        return recorded

    def wrap(self, module: Module) -> Callable[..., Any]:
        step = self.step(module, "training_step")
        if self.runtime.world_size == 1:
            return step
        self.follow(module)
        return TrainingStep(module, step, anchored=True)

    def follow(self, module: torch.nn.Module) -> None:
        if self.runtime.world_size == 1:
            return
        if self._averager is None:
            self._averager = GradientAverager(self.runtime.world_size, self.runtime.group, self._mean)
        self._averager.follow(module)

    # -- every step -----------------------------------------------------------------------------------------------

    def after_backward(self) -> None:
        if self._averager is not None:
            self._averager.average()

    def _mean(self, flat: torch.Tensor) -> None:
        from ..engines import xla

        if xla.mean(flat, self.runtime.world_size):
            return
        gathered = flat.cpu()
        dist.all_reduce(gathered, group=self.runtime.group)
        flat.copy_(gathered / self.runtime.world_size)

    def begin_batch(self, number: int | None) -> None:
        assert self._averager is not None  # several processes
        self._averager.batch = -1 if number is None else number
        if number is None:
            self._averager.average()

    def no_sync(self) -> AbstractContextManager:
        return self._averager.paused() if self._averager is not None else nullcontext()

    # -- checkpoints ----------------------------------------------------------------------------------------------

    def state_dict(self, module: Module) -> dict[str, Any]:
        return on_host(super().state_dict(module))

    def optimizer_state(self, module: Module, optimizer: Any) -> dict[str, Any]:
        return on_host(super().optimizer_state(module, optimizer))

    def checkpoint(self, trainer: Trainer, weights_only: bool) -> dict[str, Any]:
        return on_host(super().checkpoint(trainer, weights_only))

    # -- the end --------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        if self._averager is not None:
            self._averager.release()
            self._averager = None


@register("tpu_spawn")
class XLASpawnStrategy(InOwnProcesses, XLAStrategy):
    """In processes that start with `fit` and end with it, one core as well: the calling process leaves the devices
    to them.
    """

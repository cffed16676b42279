"""A process a device, gradients averaged by Horovod while backward runs.

Sergeev and Del Balso, Horovod: fast and easy distributed deep learning in TensorFlow, arXiv:1802.05799. Started by
`horovodrun -np 4 python script.py`, by ptrun, or by the script itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.distributed as dist

from ..errors import unknown_name
from .averaging import GradientAverager, refuse_own
from .ddp import DDPStrategy
from .needs import Package
from .registry import register

if TYPE_CHECKING:
    from ..module import Module
    from ..settings import Settings

RATES = ("lr", "initial_lr", "max_lr", "min_lr")


@register("horovod")
class HorovodStrategy(DDPStrategy):
    """`scale_lr=True`: learning rates times the number of processes (Goyal et al., arXiv:1706.02677).
    `compression="fp16"`: gradients travel in half precision.
    """

    replaces_optimizers = True
    packages = (
        Package("horovod", "pip alone cannot build it; run: python -m ptmigrate.runtime.engines.build_horovod"),
    )
    refuses: ClassVar[Mapping[str, str]] = {"overlap": "its hooks average each parameter for one of them; use 'ddp'"}

    def __init__(self, scale_lr: bool = False, compression: str | None = None):
        super().__init__()
        given = {"scale_lr": scale_lr, "compression": compression}
        self.options = {name: value for name, value in given.items() if value}
        if compression not in (None, "fp16"):
            raise unknown_name("compression", compression, ["fp16"])
        self.scale_lr, self.compression = scale_lr, compression
        self._optimizers: list[Any] = []
        self._accumulating = self._manual = False

    # -- setting up ------------------------------------------------------------------------------------------------

    def init_group(self, settings: Settings) -> None:
        from ..engines import horovod

        horovod.meet(settings, super().init_group)

    def setup_optimizers(self, module: Module, optimizers: list[Any]) -> list[Any]:
        from ..engines import horovod

        horovod.broadcast(itertools.chain(module.named_parameters(), module.named_buffers()))
        names = {p: name for name, p in module.named_parameters()}
        compression = horovod.Halves if self.compression else horovod.Compression
        self._manual = not module.automatic_optimization
        self._optimizers = [
            horovod.distributed(optimizer, number, names, compression) for number, optimizer in enumerate(optimizers)
        ]
        return self._optimizers

    def wrap(self, module: Module) -> Callable[..., Any]:
        self._scale_rates()
        return self.step(module, "training_step")

    def follow(self, module: torch.nn.Module) -> None:
        if self._optimizers:
            self._scale_rates()
        else:
            super().follow(module)

    def _scale_rates(self) -> None:
        """Those of the optimizers and, since schedules were made before, those that they start from."""
        size = self.runtime.world_size if self.scale_lr else 1
        for group in itertools.chain.from_iterable(optimizer.param_groups for optimizer in self._optimizers):
            group.update({name: group[name] * size for name in RATES if name in group})
        for config in self.trainer.lr_scheduler_configs if self.trainer is not None else ():
            for scheduler in (config.scheduler, *getattr(config.scheduler, "_schedulers", ())):
                for name in ("base_lrs", "max_lrs", "min_lrs"):
                    if isinstance(getattr(scheduler, name, None), list):
                        setattr(scheduler, name, [rate * size for rate in getattr(scheduler, name)])

    # -- every step ------------------------------------------------------------------------------------------------

    def before_backward(self, loss: torch.Tensor) -> None:
        super().before_backward(loss)
        if self._accumulating:
            self._hold(True)

    def after_backward(self) -> None:
        if not self._optimizers:
            super().after_backward()
        elif self._accumulating:
            self._hold(False)
        else:
            if self._manual:
                self.averager.average()  # it has nothing to average, and tells ranks apart that are elsewhere
            self._synchronize()

    def check_step(self, optimizer: Any) -> None:
        if optimizer._handles:
            refuse_own()

    def skip(self) -> None:
        if self._optimizers and not self._accumulating:
            self._synchronize()

    def _hold(self, held: bool) -> None:
        """One backward pass leaves gradients on this rank: as Horovod's backward_passes_per_step, which is a number
        for the whole run.
        """
        for optimizer in self._optimizers:
            optimizer.set_backward_passes_per_step(2 if held else 1)

    def _synchronize(self) -> None:
        """Wait for Horovod. It averages zeros for what this rank has not used; what no rank has used stays without a
        gradient, as in one process.
        """
        from ..engines import horovod

        parameters = [[p for group in o.param_groups for p in group["params"]] for o in self._optimizers]
        used = torch.tensor([p.grad is not None for p in itertools.chain(*parameters)], dtype=torch.uint8)
        dist.all_reduce(used, dist.ReduceOp.MAX, group=self.runtime.group)
        marks = iter(used.tolist())
        for optimizer, mine in zip(self._optimizers, parameters, strict=True):
            is_used = list(itertools.islice(marks, len(mine)))
            if any(is_used):
                horovod.synchronize(optimizer, [p for p, mark in zip(mine, is_used, strict=True) if mark])
            for parameter, mark in zip(mine, is_used, strict=True):
                if not mark:
                    parameter.grad = None

    def no_sync(self) -> AbstractContextManager:
        return self._paused() if self._optimizers else super().no_sync()

    @contextmanager
    def _paused(self) -> Iterator[None]:
        self._accumulating = True
        try:
            yield
        finally:
            self._accumulating = False

    @property
    def averager(self) -> GradientAverager:
        """For kept loops, whose optimizers are the script's own."""
        if self._averager is None:
            from ..engines import horovod

            self._averager = horovod.Averager(self.runtime.world_size, self.runtime.group)
        return self._averager

    def teardown(self) -> None:
        super().teardown()
        for optimizer in self._optimizers:
            optimizer._grad_accs.clear()  # its hooks go with the nodes that they hang on
        self._optimizers = []

"""A process a device, optimizer state and gradients divided among them: FairScale's OSS and ShardedDataParallel.

Every parameter has one owner, which keeps its gradient and its optimizer state, steps it and broadcasts it. Under
manual optimization gradients stay whole on every rank, because the user's own code may read them; the state is divided.
Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, SC 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from ..collectives import broadcast_tensors
from .averaging import clip_parts
from .ddp import DDPStrategy, TrainingStep
from .needs import Package
from .registry import register

if TYPE_CHECKING:
    from ..module import Module


@register("ddp_sharded")
class DDPShardedStrategy(DDPStrategy):
    """`Trainer(strategy="ddp_sharded")`, or the guide's `plugins="ddp_sharded"`."""

    packages = (
        Package("fairscale", "pip install --no-build-isolation --no-deps fairscale==0.4.13, or ptmigrate[sharded]"),
    )
    divides_states = replaces_optimizers = True
    refuses: ClassVar[Mapping[str, str]] = {
        "kept": "the loop has made its optimizers itself; use 'ddp'",
        "closure": "its step looks at all parameters together, and each process keeps some of them; use 'ddp'",
        "overlap": "FairScale gives each optimizer a memory of its own for its parameters; use 'ddp'",
        "sparse": "FairScale reduces dense ones; use 'ddp', or make the embedding with sparse=False",
    }

    def __init__(self) -> None:
        super().__init__()
        self._sharded: Any = None
        self._optimizers: list[Any] = []

    def setup_optimizers(self, module: Module, optimizers: list[Any]) -> list[Any]:
        from ..engines import fairscale

        broadcast_tensors([*module.parameters(), *module.buffers()])
        self._optimizers = [fairscale.Divided(optimizer) for optimizer in optimizers]
        if not module.automatic_optimization:
            for number, optimizer in enumerate(self._optimizers):
                optimizer.register_step_pre_hook(lambda *_, number=number: self.averager.meet(number))
        return self._optimizers

    def wrap(self, module: Module) -> Callable[..., Any]:
        if not self._optimizers:
            return super().wrap(module)
        from ..engines import fairscale

        step = TrainingStep(module, self.step(module, "training_step"), may_skip=True)
        self._sharded = fairscale.OrderedShardedDataParallel(step, self._optimizers, self.runtime.group)
        self.runtime.precision.share(self.runtime.group)
        return self._sharded

    def before_backward(self, loss: torch.Tensor) -> None:
        super().before_backward(loss)
        if self._sharded is not None:
            self._sharded.hold()

    def after_backward(self) -> None:
        if self._sharded is None:
            super().after_backward()
        elif not self._sharded._should_accumulate_grads:
            self._sharded.finish()

    def skip(self) -> None:
        if self._sharded is not None:
            self._sharded.hold()  # what earlier batches have brought has been reduced where hooks have seen it
            self.after_backward()

    def no_sync(self) -> AbstractContextManager:
        return self._sharded.no_sync() if self._sharded is not None else super().no_sync()

    def clip(self, module: Module, optimizer: Any, value: float, algorithm: str) -> None:
        """By norm: of all owners' gradients together. FairScale's own keeps the list of gradients that it saw first,
        and takes none of precision 64.
        """
        if algorithm == "value" or self._sharded is None:
            super().clip(module, optimizer, value, algorithm)
            return
        mine = [p for group in optimizer.optim.param_groups for p in group["params"]]
        clip_parts(mine, mine, value, self.runtime.device)

    def gradients(self) -> AbstractContextManager:
        divided = self._sharded is not None and not self._sharded._should_accumulate_grads
        return self._sharded.whole_gradients() if divided else super().gradients()

    def optimizer_state(self, module: Module, optimizer: Any) -> dict[str, Any]:
        optimizer.consolidate_state_dict(recipient_rank=0)
        return optimizer.state_dict() if self.runtime.rank == 0 else {}

    def load_optimizer_state(self, module: Module, optimizer: Any, state: Mapping[str, Any]) -> None:
        from ..engines import fairscale

        fairscale.load(optimizer, state)

    def teardown(self) -> None:
        super().teardown()
        if self._sharded is not None:
            for handle in self._sharded._grad_hooks:
                handle.remove()
            self._sharded = None
        self._optimizers = []

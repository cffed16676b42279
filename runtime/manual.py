"""Manual optimization: training_step calls `manual_backward` and the optimizers itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from .errors import ConfigurationError
from .hooks import overridden, step_caller
from .profilers import around
from .step import deciding_by_whole, wants_closure, whole_loss

if TYPE_CHECKING:
    from .fit import FitLoop
    from .module import Module
    from .trainer import Trainer

OURS = ("step", "toggle_model", "optimizer")


class ManualStep:
    """Places counting, hooks and scaling around the user's optimizers; the rest is the step's own affair."""

    def __init__(self, trainer: Trainer, module: Module, loop: FitLoop):
        if trainer.gradient_clip_val:
            raise ConfigurationError(
                "gradient_clip_val: in manual optimization call self.clip_gradients(optimizer, ...)"
            )
        if set(trainer.accumulation_table.values()) != {1}:
            raise ConfigurationError("accumulate_grad_batches: in manual optimization the step decides when to step")
        self.trainer, self.module, self.loop, self.runtime = trainer, module, loop, trainer.runtime
        self.several = self.runtime.world_size > 1
        self.runtime.strategy.follow(module)
        self.runtime.follow_buffers(module)
        step = step_caller(module, "training_step", self.runtime.strategy.step(module, "training_step"))
        self.step = around(trainer.profiler, "training_step", step)
        self.context = nullcontext if self.runtime.precision.plain else self.runtime.precision.forward_context
        self.before_step = trainer.hook("on_before_optimizer_step")
        self.handles: list[Any] = []
        for optimizer in trainer.optimizers:
            self.prepare(optimizer)

    def prepare(self, optimizer: Any) -> None:
        """The object stays the user's; what it gains is taken back by `close`."""
        optimizer.optimizer = optimizer  # Lightning hands out a wrapper that has this
        optimizer.toggle_model = lambda sync_grad=True: self.toggled(optimizer, sync_grad)
        scaler = self.runtime.precision.scaler
        if scaler is not None:
            optimizer.step = lambda closure=None: scaled_step(scaler, optimizer, closure)
        elif self.several and not self.trainer.whole and wants_closure(optimizer):
            whole = partial(whole_loss, self.runtime, self.module.loss_reduction)
            optimizer.step = deciding_by_whole(optimizer.step, whole)
        if hasattr(optimizer, "register_step_post_hook"):
            self.handles.append(optimizer.register_step_post_hook(self.count))
            if self.several:
                check = self.runtime.strategy.check_step
                self.handles.append(optimizer.register_step_pre_hook(lambda *_: check(optimizer)))
            if self.before_step is not None:
                hook = self.before_step
                first = optimizer.register_step_pre_hook(lambda *_: hook(optimizer))  # before an engine divides
                optimizer._optimizer_step_pre_hooks.move_to_end(first.id, last=False)
                self.handles.append(first)

    def count(self, *_: Any) -> None:
        """global_step is the number of steps of all optimizers."""
        self.loop.global_step += 1

    @contextmanager
    def toggled(self, optimizer: Any, sync_grad: bool) -> Iterator[None]:
        """Only this optimizer's parameters require gradients; they stay this rank's own where `sync_grad` is False."""
        with self.module.toggled_optimizer(optimizer), nullcontext() if sync_grad else self.runtime.no_sync():
            yield

    def start_epoch(self, accumulate: int) -> None: ...

    def run(self, batch: Any, batch_idx: int) -> tuple[bool, Any]:
        if self.several:
            self.runtime.strategy.begin_batch(self.loop.total_batch_idx)
        with self.context():
            return True, self.step(batch, batch_idx)

    def rest(self) -> None:
        """What comes now is no step: validation, or the end of the epoch."""
        if self.several:
            self.runtime.strategy.begin_batch(None)

    def finished(self, outputs: Any) -> Any:
        """What on_train_batch_end sees: a dict, the loss in it detached."""
        if outputs is None:
            return {}
        given = dict(outputs) if isinstance(outputs, Mapping) else {"loss": outputs}
        if isinstance(given.get("loss"), torch.Tensor):
            given["loss"] = given["loss"].detach()
        return given

    def close(self) -> None:
        for handle in self.handles:
            handle.remove()
        for optimizer in self.trainer.optimizers:
            for name in OURS:
                vars(optimizer).pop(name, None)
        self.runtime.strategy.teardown()


def scaled_step(scaler: torch.amp.GradScaler, optimizer: Any, closure: Any = None) -> Any:
    """The optimizer's own step on gradients that are not scaled; left out where one of them overflowed."""
    loss = closure() if closure is not None else None
    scaled = vars(optimizer).pop("step")  # the scaler calls the optimizer's own
    try:
        scaler.step(optimizer)
        scaler.update()
    finally:
        optimizer.step = scaled
    return loss


def manual_backward(trainer: Trainer, loss: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    """As `Module.manual_backward`: weighted, scaled, with the hooks around it and the module's own `backward`."""
    from .module import Module as Base

    module, runtime = trainer.module, trainer.runtime
    assert module is not None
    if trainer.cuts_batches:
        trainer.logs.step_losses()[1].append(loss.detach())
    if runtime.precision.scaler is not None:
        loss = runtime.precision.scaler.scale(loss)
    before, after = trainer.hook("on_before_backward"), trainer.hook("on_after_backward")
    if before is not None:
        before(loss)
    if overridden(module, "backward", Base):
        weight = runtime.weight(module.loss_reduction)
        weighted = loss if weight == 1.0 else loss * weight
        runtime.strategy.own_backward(module.backward, weighted, *args, **kwargs)
    else:
        runtime.backward(loss, *args, loss_reduction=module.loss_reduction, **kwargs)
    if after is not None:
        after()

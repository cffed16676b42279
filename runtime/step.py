"""One training batch: the step, backward with the right weight, clipping, the optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .errors import ConfigurationError
from .handle import checked_reduction
from .hooks import overridden

if TYPE_CHECKING:
    from .fit import FitLoop
    from .module import Module
    from .trainer import Trainer


class TrainingStepRunner:
    """Decides once how batches are run; `run` is what the loop calls."""

    def __init__(self, trainer: Trainer, module: Module, loop: FitLoop):
        from .module import Module as Base

        self.trainer, self.module, self.loop = trainer, module, loop
        self.runtime = trainer.runtime
        self.reduction = checked_reduction(module.loss_reduction)
        self.accumulate = 1
        self.weighs = self.runtime.world_size > 1
        self._counting: list[Any] = []
        if not module.automatic_optimization:
            self.run = self.run_manual
            self.runtime.strategy.follow(module)
            self.runtime.follow_buffers(module)
            self.step: Callable[..., Any] = self.runtime.strategy.step(module, "training_step")
            self._count_steps()
            return
        if len(trainer.optimizers) > 1:
            raise ConfigurationError(
                "several optimizers need automatic_optimization = False, and steps made by training_step"
            )
        self.optimizer = trainer.optimizers[0] if trainer.optimizers else None
        self.strategy = self.runtime.strategy
        self.run = self.run_automatic
        self.runtime.follow_buffers(module)
        self.step = self.runtime.strategy.wrap(module)
        self.closure = overridden(module, "optimizer_step", Base) or wants_closure(self.optimizer)
        self.own_zero = overridden(module, "optimizer_zero_grad", Base)
        self.clips = bool(trainer.gradient_clip_val) or overridden(module, "configure_gradient_clipping", Base)
        self.hooks = {name: trainer.hook(name) for name in STEP_HOOKS}
        self.before_zero, self.before_backward, self.after_backward, self.before_step = self.hooks.values()
        self.scaler = self.runtime.precision.scaler
        self.context = None if self.runtime.precision.plain else self.runtime.precision.forward_context

    def start_epoch(self, table: dict[int, int]) -> None:
        from .fit import accumulation

        self.accumulate = accumulation(table, self.loop.epoch)
        self.fresh = True  # the next batch starts from zero gradients

    # -- automatic ------------------------------------------------------------------------------------------------

    def run_automatic(self, batch: Any, batch_idx: int) -> tuple[bool, Any]:
        """(whether the optimizer stepped, what training_step returned)"""
        full = self.accumulate == 1 or (batch_idx + 1) % self.accumulate == 0 or batch_idx + 1 == self.loop.batches
        if not full:
            with self.runtime.no_sync():
                return False, self.forward_backward(batch, batch_idx)
        if self.closure:
            return self.run_closure(batch, batch_idx)
        outputs = self.forward_backward(batch, batch_idx)
        if outputs is not None:
            self.make_step()
        self.fresh = True
        self.loop.global_step += 1  # a skipped batch counts as a step, as in Lightning
        return True, outputs

    def forward_backward(self, batch: Any, batch_idx: int) -> Any:
        if self.context is None:
            outputs = self.step(batch, batch_idx)
        else:
            with self.context():
                outputs = self.step(batch, batch_idx)
        loss = outputs if isinstance(outputs, torch.Tensor) else loss_of(outputs)
        if loss is None:
            return None
        if self.fresh:
            self.zero_grad(batch_idx)
        self.fresh = False
        if self.accumulate > 1:
            loss = loss / self.accumulate
        if self.weighs:
            weight = self.runtime.weight(self.reduction)
            if weight != 1.0:
                loss = loss * weight
        if self.scaler is not None:
            loss = self.scaler.scale(loss)
        if self.before_backward is not None:
            self.before_backward(loss)
        self.strategy.backward(loss)
        if self.after_backward is not None:
            self.after_backward()
        return outputs

    def zero_grad(self, batch_idx: int) -> None:
        if self.before_zero is not None:
            self.before_zero(self.optimizer)
        if self.own_zero:
            self.module.optimizer_zero_grad(self.loop.epoch, batch_idx, self.optimizer)  # type: ignore[arg-type]
        elif self.optimizer is not None:
            self.strategy.zero_grad(self.optimizer)

    def make_step(self) -> None:
        if self.optimizer is None:
            return
        self.before_optimizer()
        if self.scaler is None:
            self.strategy.optimizer_step(self.optimizer)
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()

    def before_optimizer(self) -> None:
        """The hook and clipping, on gradients that are not scaled."""
        if self.scaler is not None and (self.clips or self.before_step is not None):
            self.scaler.unscale_(self.optimizer)  # type: ignore[arg-type]
        if self.before_step is not None:
            self.before_step(self.optimizer)
        if self.clips:
            trainer = self.trainer
            self.module.configure_gradient_clipping(
                self.optimizer, trainer.gradient_clip_val, trainer.gradient_clip_algorithm
            )

    def run_closure(self, batch: Any, batch_idx: int) -> tuple[bool, Any]:
        """Optimizers that evaluate the loss themselves (LBFGS), and modules with an optimizer_step of their own."""
        outputs: list[Any] = []
        first = self.fresh

        def closure() -> Any:
            self.fresh = first
            outputs.append(self.forward_backward(batch, batch_idx))
            if outputs[-1] is not None:
                self.before_optimizer()
            return loss_of(outputs[-1])

        self.module.optimizer_step(self.loop.epoch, batch_idx, self.optimizer, closure)
        self.fresh = True
        self.loop.global_step += 1
        return True, outputs[-1] if outputs else None

    # -- manual ---------------------------------------------------------------------------------------------------

    def run_manual(self, batch: Any, batch_idx: int) -> tuple[bool, Any]:
        return False, self.step(batch, batch_idx)

    def _count_steps(self) -> None:
        """global_step is the number of steps of all optimizers."""

        def count(*_: Any) -> None:
            self.loop.global_step += 1

        for optimizer in self.trainer.optimizers:
            if hasattr(optimizer, "register_step_post_hook"):
                self._counting.append(optimizer.register_step_post_hook(count))

    def close(self) -> None:
        for handle in self._counting:
            handle.remove()
        self.runtime.strategy.teardown()


STEP_HOOKS = ("on_before_zero_grad", "on_before_backward", "on_after_backward", "on_before_optimizer_step")


def loss_of(outputs: Any) -> torch.Tensor | None:
    """The loss in what training_step returned: a tensor, a dict with "loss", or None."""
    if outputs is None or isinstance(outputs, torch.Tensor):
        return outputs
    if isinstance(outputs, dict) and "loss" in outputs:
        return outputs["loss"]
    raise ConfigurationError(
        f"training_step returned a {type(outputs).__name__}: a tensor, a dict with 'loss', or None is needed"
    )


def wants_closure(optimizer: Any) -> bool:
    """Does `step` insist on a closure?"""
    import inspect

    if optimizer is None:
        return False
    parameter = inspect.signature(type(optimizer).step).parameters.get("closure")
    return parameter is not None and parameter.default is inspect.Parameter.empty

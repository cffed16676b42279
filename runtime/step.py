"""One training batch: the step, backward with the right weight, clipping, the optimizer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from .draws.speaking import held_by, speaks_of
from .errors import ConfigurationError
from .handle import checked_reduction
from .hooks import overridden, step_caller, takes, with_gradients
from .profilers import around

if TYPE_CHECKING:
    from .fit import FitLoop
    from .handle import Runtime
    from .module import Module
    from .trainer import Trainer

LOOKS = ("training_step", "on_train_batch_start", "on_train_batch_end")
STEP_HOOKS = ("on_before_zero_grad", "on_before_backward", "on_after_backward", "on_before_optimizer_step")


class AutomaticStep:
    """Decides once how batches are run; `run` is what the loop calls."""

    def __init__(self, trainer: Trainer, module: Module, loop: FitLoop):
        from .module import Module as Base

        self.trainer, self.module, self.loop, self.runtime = trainer, module, loop, trainer.runtime
        self.strategy = self.runtime.strategy
        self.reduction = checked_reduction(module.loss_reduction)
        self.accumulate = 1
        self.weighs = self.runtime.world_size > 1
        self.cuts = trainer.cuts_batches
        self.norms = loop.norms if loop.norms.parts else None
        self.optimizer = trainer.optimizers[0] if trainer.optimizers else None
        self.runtime.follow_buffers(module)
        measured = partial(around, trainer.profiler)
        self.step = measured("training_step", step_caller(module, "training_step", self.strategy.wrap(module)))
        own_backward = overridden(module, "backward", Base)
        backward = partial(self.strategy.own_backward, module.backward) if own_backward else self.strategy.backward
        self.backward = measured("backward", backward)
        self.optimizer_step = measured("optimizer_step", self.strategy.optimizer_step)
        self.own_step = overridden(module, "optimizer_step", Base)
        self.closure = self.own_step or loop.wants_closure
        self.decides_by_loss = loop.wants_closure and self.runtime.world_size > 1 and not trainer.whole
        if loop.wants_closure and self.runtime.precision.scaler is not None:
            raise ConfigurationError(
                "precision 16 scales the loss, which an optimizer that evaluates it several times a step (LBFGS) "
                "cannot take: use precision 'bf16' or 32"
            )
        self.own_zero = overridden(module, "optimizer_zero_grad", Base)
        self.zero = self.strategy.around_batch_hook(module.optimizer_zero_grad)
        self.zero_takes_turn = takes(module.optimizer_zero_grad, "optimizer_idx")
        own_clip = overridden(module, "configure_gradient_clipping", Base)
        self.clips = bool(trainer.gradient_clip_val) or own_clip
        clip = module.configure_gradient_clipping
        self.clip = with_gradients(self.strategy, clip) if own_clip else clip
        hooks = (trainer.hook(name) for name in STEP_HOOKS)
        self.before_zero, self.before_backward, self.after_backward, self.before_step = hooks
        sees_each = self.after_backward is not None  # the user's code, gradients that are only accumulated
        around_backward = sees_each or self.before_backward is not None
        self.scaler = self.runtime.precision.scaler  # which takes no step without gradients
        self.asks = (around_backward or self.scaler is not None) and self.strategy.data_place()[1] > 1
        self.anywhere = False  # has a rank a loss of this batch?
        sees_each = sees_each or (self.weighs and self.looks_between())
        self.accumulating = self.strategy.whole_accumulation if sees_each else self.runtime.no_sync
        self.context = None if self.runtime.precision.plain else self.runtime.precision.forward_context
        self.turn: tuple[int, ...] = ()  # the optimizer's number, where there are several

    def looks_between(self) -> bool:
        """Whether the user's code, as far as it says so, looks at gradients between batches that are accumulated."""
        held = [*held_by(self.module), *self.trainer.callbacks]
        return self.strategy.keeps_gradients and speaks_of({"grad"}, held, LOOKS)

    def start_epoch(self, accumulate: int) -> None:
        self.accumulate = accumulate

    # -- a batch --------------------------------------------------------------------------------------------------

    def run(self, batch: Any, batch_idx: int) -> tuple[bool, Any]:
        """(whether the optimizer stepped, what training_step returned)"""
        if self.accumulate > 1 and not self.window_ends(batch_idx):
            with self.accumulating():
                return False, self.forward_backward(batch, batch_idx)
        if self.closure:
            return True, self.run_closure(batch, batch_idx)
        outputs = self.forward_backward(batch, batch_idx)
        if self.optimizer is not None:
            self.make_step()
        self.loop.global_step += 1  # a skipped batch counts as a step, as in Lightning
        return True, outputs

    def window_ends(self, batch_idx: int) -> bool:
        return (batch_idx + 1) % self.accumulate == 0 or self.loop.is_last(batch_idx)

    def forward_backward(self, batch: Any, batch_idx: int) -> Any:
        if self.norms is not None:
            self.norms.new_step()
        if self.asks:
            self.loop.absent = False
        if self.context is None:
            outputs = self.step(batch, batch_idx, *self.turn)
        else:
            with self.context():
                outputs = self.step(batch, batch_idx, *self.turn)
        loss = outputs if isinstance(outputs, torch.Tensor) else loss_of(outputs)
        if self.accumulate == 1 or batch_idx % self.accumulate == 0:
            self.zero_grad(batch_idx)
        present = loss is not None and not self.loop.absent
        self.anywhere = anywhere = self.is_anywhere(present) if self.asks else present
        if loss is None:
            if self.weighs:
                self.skip()
            if anywhere and self.scaler is not None:
                self.scaler.scale(torch.zeros((), device=self.runtime.device))  # it may be the first: all ranks step
            if anywhere and self.after_backward is not None:  # another rank's gradients
                self.after_backward()
            return None
        if self.cuts:
            self.trainer.logs.step_losses()[1].append(loss.detach())
        if self.accumulate > 1:
            loss = loss / self.accumulate
        if self.weighs:
            weight = self.runtime.weight(self.reduction)
            if weight != 1.0:
                loss = loss * weight
        if self.scaler is not None:
            loss = self.scaler.scale(loss)
        if present and self.before_backward is not None:
            self.before_backward(loss)
        self.backward(loss)
        if anywhere and self.after_backward is not None:
            self.after_backward()
        return outputs

    def is_anywhere(self, present: bool) -> bool:
        """Has a rank a loss of this batch? All ranks ask, where there are hooks around backward: all call them, or none
        does, as in one process.
        """
        found = torch.tensor([present], dtype=torch.uint8)
        dist.all_reduce(found, dist.ReduceOp.MAX, group=self.runtime.group)
        return bool(found.item())

    def skip(self) -> None:
        """training_step gave no loss on this rank."""
        if self.norms is not None:
            self.norms.answer()
        self.strategy.skip()

    def zero_grad(self, batch_idx: int) -> None:
        if self.before_zero is not None:
            self.before_zero(self.optimizer)
        if self.own_zero:
            arguments = (self.loop.epoch, batch_idx, self.optimizer, *(self.turn if self.zero_takes_turn else ()))
            self.zero(*arguments)
        elif self.optimizer is not None:
            self.strategy.zero_grad(self.optimizer)

    def make_step(self) -> None:
        self.before_optimizer(self.anywhere)
        if self.scaler is None:
            self.optimizer_step(self.optimizer)
        elif self.anywhere:
            self.scaler.step(self.optimizer)  # type: ignore[arg-type]
            self.scaler.update()

    def before_optimizer(self, scaled: bool) -> None:
        """The hook and clipping, on gradients that are not scaled."""
        if self.scaler is not None and scaled and (self.clips or self.before_step is not None):
            self.scaler.unscale_(self.optimizer)  # type: ignore[arg-type]
        if self.before_step is not None:
            self.before_step(self.optimizer)
        if self.clips:
            trainer = self.trainer
            self.clip(
                self.optimizer,
                gradient_clip_val=trainer.gradient_clip_val,
                gradient_clip_algorithm=trainer.gradient_clip_algorithm,
            )

    def run_closure(self, batch: Any, batch_idx: int) -> Any:
        """Optimizers that evaluate the loss themselves (LBFGS), and modules with an optimizer_step of their own."""
        outputs: list[Any] = []

        def closure() -> Any:
            with torch.enable_grad():
                outputs[:] = [self.forward_backward(batch, batch_idx)]
            loss = loss_of(outputs[0])
            if loss is not None and self.decides_by_loss:
                loss = whole_loss(self.runtime, self.reduction, loss)
            return loss / self.accumulate if loss is not None and self.accumulate > 1 else loss

        with instead_of_step(self.optimizer, partial(self.closure_step, outputs)):
            self.strategy.around_own_step(call_optimizer_step)(
                self.module, self.loop.epoch, batch_idx, self.optimizer, self.turn, closure
            )
        self.loop.global_step += 1
        return outputs[0] if outputs else None

    def closure_step(self, outputs: list[Any], step: Callable[..., Any], closure: Callable | None = None) -> Any:
        """`optimizer.step(closure)` as the module calls it: what belongs before a step comes after the closure.

        A closure that the module calls by itself has nothing of it; `outputs` is what the last one gave.
        """

        def evaluated() -> Any:
            loss = closure() if closure is not None else None
            self.before_optimizer(bool(outputs) and self.anywhere)
            return loss

        if self.scaler is None and closure is not None:
            return step(closure=evaluated)
        loss = evaluated()
        if self.scaler is None:
            return step()
        if outputs and self.anywhere:
            with instead_of_step(self.optimizer, lambda _, *args, **kwargs: step(*args, **kwargs)):
                self.scaler.step(self.optimizer)  # type: ignore[arg-type]
            self.scaler.update()
        return loss

    def finished(self, outputs: Any) -> Any:
        """What on_train_batch_end sees of what training_step gave: a dict, the loss in it detached."""
        if outputs is None:
            return {}
        loss = loss_of(outputs)
        assert loss is not None
        loss = loss.detach() / self.accumulate if self.accumulate > 1 else loss.detach().clone()
        return {**outputs, "loss": loss} if isinstance(outputs, Mapping) else {"loss": loss}

    def only_forward(self) -> None:
        """From here on losses are computed, and no gradients."""
        self.backward, self.before_backward, self.after_backward = (lambda loss: None), None, None
        self.zero_grad = lambda batch_idx: None  # type: ignore[method-assign]

    def rest(self) -> None: ...

    def close(self) -> None:
        self.strategy.teardown()


class SeveralOptimizers(AutomaticStep):
    """Automatic optimization with several optimizers, as Lightning 1 had it: each in its turn runs the step, with
    `optimizer_idx`, while only its own parameters require gradients.

    `frequency` in the dicts of configure_optimizers: so many batches for one optimizer, then so many for the next.
    """

    def __init__(self, trainer: Trainer, module: Module, loop: FitLoop):
        super().__init__(trainer, module, loop)
        if not takes(module.training_step, "optimizer_idx", 3):
            raise ConfigurationError(
                f"{len(trainer.optimizers)} optimizers: give training_step the argument optimizer_idx, or set "
                "automatic_optimization = False and make the steps in training_step"
            )
        self.frequencies = trainer.optimizer_frequencies

    def run(self, batch: Any, batch_idx: int) -> tuple[bool, Any]:
        stepped, outputs = False, []
        for index in self.whose_turn():
            self.optimizer, self.turn = self.trainer.optimizers[index], (index,)
            self.module.toggle_optimizer(self.optimizer)
            stepped, output = super().run(batch, batch_idx)
            self.module.untoggle_optimizer(self.optimizer)
            outputs.append(output)
        return stepped, outputs

    def whose_turn(self) -> range:
        """The numbers of the optimizers that this batch is for."""
        if not self.frequencies:
            return range(len(self.trainer.optimizers))
        place = self.loop.total_batch_idx % sum(self.frequencies)
        for index, frequency in enumerate(self.frequencies):
            if place < frequency:
                return range(index, index + 1)
            place -= frequency
        raise AssertionError("frequencies cover every place")

    def finished(self, outputs: Any) -> Any:
        every = [AutomaticStep.finished(self, output) for output in outputs]
        return every[0] if self.frequencies else every


def loss_of(outputs: Any) -> torch.Tensor | None:
    """The loss in what training_step returned: a tensor, a dict with "loss", or None."""
    if outputs is None or isinstance(outputs, torch.Tensor):
        return outputs
    if isinstance(outputs, Mapping) and outputs.get("loss") is not None:
        return outputs["loss"]
    raise ConfigurationError(
        f"training_step returned a {type(outputs).__name__}: a tensor, a dict with 'loss', or None is needed"
    )


def wants_closure(optimizer: Any) -> bool:
    """Does `step` insist on a closure?"""
    if optimizer is None:
        return False
    parameter = inspect.signature(type(optimizer).step).parameters.get("closure")
    return parameter is not None and parameter.default is inspect.Parameter.empty


def deciding_by_whole(step: Callable[..., Any], whole: Callable[[Any], Any]) -> Callable[..., Any]:
    """`step` of an optimizer that decides by the loss (a line search): ranks that went by the losses of their shares
    would evaluate another number of times, and wait for one another. What it returns is the rank's own.
    """

    def decided(closure: Callable[[], Any]) -> Any:
        given: list[tuple[Any, Any]] = []

        def evaluated() -> Any:
            own = closure()
            given.append((own, whole(own)))
            return given[-1][1]

        found = step(evaluated)
        return next((own for own, of_all in given if of_all is found), found)

    return update_wrapper(decided, step)


def whole_loss(runtime: Runtime, reduction: str, loss: Any) -> Any:
    """A loss of the global batch, of those of the ranks' shares."""
    if not isinstance(loss, torch.Tensor):
        return loss
    return (runtime.batch_sum if reduction == "sum" else runtime.batch_mean)(loss.detach())


@contextmanager
def instead_of_step(optimizer: Any, instead: Callable[..., Any]) -> Iterator[None]:
    """Inside, `optimizer.step(...)` is `instead(step, ...)`, where `step` is what it was."""
    if optimizer is None:
        yield
        return
    step, own = optimizer.step, vars(optimizer).get("step")
    optimizer.step = update_wrapper(lambda *args, **kwargs: instead(step, *args, **kwargs), step)
    try:
        yield
    finally:
        if own is None:
            del optimizer.step
        else:
            optimizer.step = own


def call_optimizer_step(
    module: Module, epoch: int, batch_idx: int, optimizer: Any, turn: tuple[int, ...], closure: Callable[[], Any]
) -> None:
    """`optimizer_step` with today's arguments, or with Lightning 1's, which had optimizer_idx among them."""
    if takes(module.optimizer_step, "optimizer_idx"):
        index = turn[0] if turn else 0
        module.optimizer_step(epoch, batch_idx, optimizer, index, optimizer_closure=closure)  # type: ignore
    else:
        module.optimizer_step(epoch, batch_idx, optimizer, closure)

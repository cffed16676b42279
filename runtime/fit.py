"""Training: epochs, and the loop that runs at every step.

Everything that happens now and then (hooks, logging, validation, schedulers) is decided before the loop.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from . import collectives, optimizers
from .checkpoint import randomness, state
from .evaluate import EvaluationLoop, filled, number_of_batches
from .hooks import find_hook
from .position import Position
from .step import TrainingStepRunner, wants_closure

if TYPE_CHECKING:
    from .module import Module
    from .trainer import Trainer


class FitLoop:
    """The state of a fit: which epoch, which batch, how many optimizer steps."""

    def __init__(self, trainer: Trainer):
        self.trainer = trainer
        self.epoch = 0
        self.batch_idx = -1
        self.global_step = 0
        self.batches: int | None = None  # of an epoch on this rank; None while unknown
        self.epoch_ended = False
        self.at_epoch_end = False  # the last batch is behind
        self.epoch_complete = False  # between an epoch's last act and the next epoch
        self.position = Position(self)

    # -- the run --------------------------------------------------------------------------------------------------

    def run(self, module: Module, ckpt_path: Any = None, weights_only: bool = True) -> None:
        trainer = self.trainer
        trainer.should_stop = False
        self.started = time.monotonic()
        source = trainer.divide(trainer.train_dataloader, train=True)
        self.limit = train_limit(source, trainer.limits["train"])
        self.batches = known_length(source, self.limit)
        self.set_up(module)
        self.keeps_outputs = filled(module, "training_epoch_end")
        self.runner = TrainingStepRunner(trainer, module, self)
        if ckpt_path is not None:
            state.resume(trainer, ckpt_path, weights_only)
        self.validation = EvaluationLoop(trainer, "validate")
        self.validates = bool(trainer.val_dataloaders is not None and filled(module, "validation_step"))
        tell_once(trainer)
        begun = False
        try:
            trainer.call("on_fit_start")
            self.sanity_check(module)
            trainer.call("on_train_start")
            every = trainer.reload_dataloaders_every_n_epochs
            while not self.done():
                if every and begun and self.epoch % every == 0:
                    source = trainer.reload_train_dataloader()
                    self.batches = known_length(source, self.limit)
                begun = True
                self.run_epoch(module, source)
                self.epoch_complete = True
                trainer.call("on_epoch_complete")
                self.epoch += 1
                self.batch_idx = -1  # a checkpoint written after the fit goes on with the next epoch
                self.epoch_complete = False
            trainer.runtime.strategy.finish(module)
            trainer.call("on_train_end")
            trainer.call("on_fit_end")
        finally:
            self.runner.close()

    def set_up(self, module: Module) -> None:
        """The optimizers and schedulers, as the strategy wants them."""
        trainer, strategy = self.trainer, self.trainer.runtime.strategy
        strategy.setup_module(module)
        made, schedulers = optimizers.read(module.configure_optimizers())
        strategy.check({"optimizers": len(made) > 1, "closure": any(map(wants_closure, made))})
        trainer.optimizers = strategy.setup_optimizers(module, made)
        optimizers.rebind(schedulers, made, trainer.optimizers)
        trainer.lr_scheduler_configs = schedulers

    def sanity_check(self, module: Module) -> None:
        steps = self.trainer.num_sanity_val_steps
        if not steps or not self.validates:
            return
        drawn = randomness.capture()
        self.trainer.sanity_checking = True
        self.trainer.call("on_sanity_check_start")
        self.validation.run(module, self.trainer.val_dataloaders, None if steps == -1 else steps)
        self.trainer.call("on_sanity_check_end")
        self.trainer.sanity_checking = False
        randomness.restore(drawn)  # training draws what it draws without the check

    def done(self) -> bool:
        trainer = self.trainer
        if trainer.max_steps != -1 and self.global_step >= trainer.max_steps:
            return True
        if trainer.max_epochs != -1 and self.epoch >= trainer.max_epochs:
            return True
        return self.stopping()

    def stopping(self) -> bool:
        """Has somebody set should_stop, and are min_epochs and min_steps behind us?"""
        trainer = self.trainer
        early = self.epoch < (trainer.min_epochs or 0) or self.global_step < (trainer.min_steps or 0)
        return trainer.should_stop and not early

    # -- one epoch ------------------------------------------------------------------------------------------------

    def run_epoch(self, module: Module, source: Any) -> None:
        trainer = self.trainer
        self.epoch_ended = self.at_epoch_end = False
        self.batch_idx = -1
        self.outputs: list[Any] = []  # of the steps, for training_epoch_end
        trainer.logs.start(training=True)
        set_epoch(trainer.train_dataloader, self.epoch)
        trainer.call("on_train_epoch_start")
        self.runner.start_epoch(trainer.accumulate_grad_batches)
        if trainer.progress is not None:
            trainer.progress.start(trainer)
        self.run_batches(self.position.batches(source))
        trainer.runtime.forget_share()
        trainer.logs.in_step = False
        self.at_epoch_end = True
        if self.validates_after_epoch():
            self.validation.run(module, trainer.val_dataloaders)
        if self.keeps_outputs:
            module.training_epoch_end(self.outputs)
        self.end_epoch()
        self.step_schedulers("epoch", self.epoch + 1)

    def end_epoch(self) -> None:
        """The hook, then the epoch's values; callbacks that watch them are called when they are known."""
        trainer = self.trainer
        watching = [cb for cb in trainer.callbacks if getattr(cb, "watches_metrics", False)]
        others = [cb for cb in trainer.callbacks if cb not in watching]
        for callbacks, module in ((others, trainer.module), (watching, None)):
            ended = find_hook("on_train_epoch_end", trainer, callbacks, module)
            if ended is not None:
                ended()
            if module is not None:
                trainer.publish(*trainer.logs.end_epoch())

    def run_batches(self, batches: Any) -> None:
        """The step loop."""
        trainer, logs, run_step = self.trainer, self.trainer.logs, self.runner.run
        batch_start, batch_end = trainer.hook("on_train_batch_start"), trainer.hook("on_train_batch_end")
        if self.keeps_outputs:
            batch_end = keeping(batch_end, self.outputs)
        place = trainer.runtime.place_batch if trainer.runtime.places_batches else None
        every = trainer.log_every_n_steps if trainer.loggers else 0
        steps_schedulers = any(config.interval == "step" for config in trainer.lr_scheduler_configs)
        validate_every = self.batches_between_validations()
        max_steps = trainer.max_steps if trainer.max_steps != -1 else math.inf
        seconds = trainer.max_time
        progress = trainer.progress
        refresh = progress.every(self.batches) if progress is not None else 0

        for batch_idx, batch in batches:
            self.batch_idx = batch_idx
            if place is not None:
                batch = place(batch)
            logs.batch, logs.in_step = batch, True
            logs.batches[None] += 1
            if batch_start is not None and batch_start(batch, batch_idx) == -1:
                break
            stepped, outputs = run_step(batch, batch_idx)
            if steps_schedulers and stepped:
                self.step_schedulers("step", batch_idx + 1)
            if batch_end is not None:
                batch_end(outputs, batch, batch_idx)
            if every and self.global_step % every == 0:
                trainer.publish_step()
            if progress is not None and (batch_idx + 1) % refresh == 0:
                progress.update(trainer, batch_idx + 1)
            if validate_every and (batch_idx + 1) % validate_every == 0:
                self.validate_between(batch_idx)
            if seconds is not None and trainer.runtime.broadcast(time.monotonic() - self.started > seconds):
                trainer.should_stop = True
            if self.epoch_ended or self.global_step >= max_steps or (trainer.should_stop and self.stopping()):
                break

    def validate_between(self, batch_idx: int) -> None:
        """Validation in the middle of an epoch; at its end, `validates_after_epoch` decides."""
        if batch_idx + 1 != self.batches:
            assert self.trainer.module is not None
            self.validation.run(self.trainer.module, self.trainer.val_dataloaders)

    def batches_between_validations(self) -> int | None:
        """From val_check_interval: None when validation runs at the end of epochs only."""
        interval = self.trainer.val_check_interval
        if not self.validates or (interval == 1.0 and isinstance(interval, float)):
            return None
        if isinstance(interval, int):
            return interval
        return max(1, int(self.batches * interval)) if self.batches is not None else None

    def validates_after_epoch(self) -> bool:
        trainer = self.trainer
        every = trainer.check_val_every_n_epoch
        if not self.validates or (every is not None and (self.epoch + 1) % every):
            return False
        cut = trainer.max_steps != -1 and self.global_step >= trainer.max_steps and self.batch_idx + 1 != self.batches
        if cut and not (self.epoch_ended or trainer.should_stop):
            return False
        between = self.batches_between_validations()
        return between is None or (self.batch_idx + 1) % between == 0

    def step_schedulers(self, interval: str, count: int) -> None:
        """Step those of this interval whose turn it is; `count` steps or epochs are done."""
        trainer = self.trainer
        assert trainer.module is not None
        if not trainer.module.automatic_optimization:
            return  # a manual module steps its schedules itself
        for config in trainer.lr_scheduler_configs:
            if config.interval != interval or count % config.frequency:
                continue
            metric = None
            if config.reduce_on_plateau:
                metric = trainer.callback_metrics.get(str(config.monitor))
                if metric is None:
                    if config.strict:
                        raise missing_metric(config.monitor, trainer.callback_metrics)
                    continue
            trainer.module.lr_scheduler_step(config.scheduler, metric)

    def estimated_steps(self) -> float:
        """Optimizer steps of the whole fit, as far as they are known."""
        trainer = self.trainer
        if self.batches is None:
            return trainer.max_steps if trainer.max_steps != -1 else math.inf
        steps = sum(
            math.ceil(self.batches / accumulation(trainer.accumulate_grad_batches, epoch))
            for epoch in range(max(trainer.max_epochs, 0))
        )
        if trainer.max_epochs == -1:
            return trainer.max_steps if trainer.max_steps != -1 else math.inf
        return steps if trainer.max_steps == -1 else min(steps, trainer.max_steps)


def tell_once(trainer: Trainer) -> None:
    """On several devices: what they are, and how many samples a step takes. One device says nothing."""
    strategy = trainer.runtime.strategy
    line = strategy.describe(getattr(trainer.train_dataloader, "batch_size", None), trainer.whole)
    if line and trainer.is_global_zero:
        print(line, file=sys.stderr)


def accumulation(table: dict[int, int], epoch: int) -> int:
    """Batches a step in `epoch`, from {first epoch: batches}."""
    return table[max(first for first in table if first <= epoch)]


def missing_metric(name: Any, there: dict[str, Any]) -> Exception:
    from .errors import unknown_name

    return unknown_name("metric to monitor", name, there)


def keeping(batch_end: Callable[..., Any] | None, kept: list[Any]) -> Callable[..., Any]:
    """`batch_end`, and before it what the step gave goes to `kept`, its loss detached."""

    def keep(outputs: Any, *args: Any) -> Any:
        if outputs is not None:
            kept.append(collectives.map_leaves(outputs if isinstance(outputs, dict) else {"loss": outputs}, _detached))
        return batch_end(outputs, *args) if batch_end is not None else None

    return keep


def _detached(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf


def train_limit(source: Any, limit: float | None) -> int | None:
    return number_of_batches(source, limit)


def known_length(source: Any, limit: int | None) -> int | None:
    try:
        length = len(source)
    except (TypeError, NotImplementedError):
        return None
    return length if limit is None else min(length, limit)


def set_epoch(loader: Any, epoch: int) -> None:
    """Samplers that want to know the epoch are told."""
    for sampler in (getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None)):
        if sampler is not None and hasattr(sampler, "set_epoch"):
            with contextlib.suppress(NotImplementedError):
                sampler.set_epoch(epoch)

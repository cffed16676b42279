"""Training: epochs, and the loop that runs at every step.

Everything that happens now and then (hooks, logging, validation, schedulers) is decided before the loop.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from . import collectives, environment, optimizers
from .batch_norm import JoinedNorms
from .checkpoint import randomness, state
from .data.ahead import Ahead
from .data.borrowed import uncounted
from .data.combined import loaders_of
from .data.epoch import known_length, set_epoch
from .draws import OneStream, ValidationDraws
from .evaluate import EvaluationLoop, filled, number_of_batches
from .hooks import AT_BATCHES, BETWEEN_BATCHES, WITH_GRADIENTS, find_hook, overridden, with_gradients
from .loop_names import FitNames, Phase
from .manual import ManualStep
from .pace import Pace
from .position import Position
from .profilers import around, through
from .schedules import Schedules
from .step import AutomaticStep, SeveralOptimizers, wants_closure
from .stopping import Stopping, speaks_of
from .strategies.needs import features_of_optimizers
from .strategies.own_names import OwnNames
from .whole import draw_alike, rank_zeros_draws, tell_draws_apart

if TYPE_CHECKING:
    from .module import Module
    from .trainer import Trainer


LAST = ("is_last_batch", "batch_progress")  # where a script asks whether a batch is the last one


class FitLoop(FitNames):
    """The state of a fit: which epoch, which batch, how many optimizer steps."""

    def __init__(self, trainer: Trainer):
        self.trainer = trainer
        self.epoch = 0
        self.batch_idx = -1
        self.before_epoch = 0  # batches of the epochs before
        self.global_step = 0
        self.logged_steps = 0  # batches after which optimizers stepped: what loggers count by
        self.stepped = True  # at the batch after which validation runs; an epoch ends with a step
        self.length: int | None = None  # batches of an epoch on this rank; None where they are unknown
        self.batches: int | None = None  # the same; in the last batch of an epoch it may have become known
        self.last = False  # is the current batch the epoch's last one, as far as is known?
        self.ahead: Ahead | None = None  # of an epoch whose length is unknown
        self.epoch_ended = False
        self.skipped = False  # is there to be nothing of this epoch?
        self.at_epoch_end = False  # the last batch is behind
        self.norms = JoinedNorms(trainer.runtime)
        self.absent = False  # has an engine put a zero in the place of the loss that the step has not given here?
        self.phase = Phase.BETWEEN  # of the epoch
        self.draws, self.validation_draws = OneStream(trainer), ValidationDraws(trainer)
        self.position = Position(self)
        self.own_names: OwnNames | None = None  # while a fit runs
        self.told_draws = False  # that ranks with the same batches have drawn unlike

    # -- the run --------------------------------------------------------------------------------------------------

    def run(self, module: Module, checkpoint: dict[str, Any] | None = None) -> None:
        trainer = self.trainer
        self.stopping = Stopping(self)
        source = self.open_source(trainer.divide(trainer.train_dataloader, train=True))
        self.set_up(module)
        self.keeps_outputs = filled(module, "training_epoch_end")
        ours = any(getattr(callback, "asks_for_last", False) for callback in trainer.callbacks)
        self.asks_for_last = ours or any(speaks_of(LAST, owner) for owner in (module, *trainer.callbacks))
        self.draws.open(module)
        self.validation_draws.open(module)
        self.runner = self.choose_runner(module)
        if checkpoint is not None:
            state.resume(trainer, checkpoint)
        self.validation = EvaluationLoop(trainer, "validate")
        self.pace = Pace(self, trainer.enable_validation)
        tell_once(trainer)
        try:
            trainer.call("on_fit_start")
            self.sanity_check(module)
            if not self.done() and not self.stopping.before_training():
                self.train(module, source)
            trainer.call("on_fit_end")
        finally:
            assert self.own_names is not None
            self.own_names.close()
            self.own_names = None
            self.draws.close()
            self.runner.close()
            self.norms.close()

    def train(self, module: Module, source: Any) -> None:
        trainer = self.trainer
        trainer.logs.start(training=True)
        self.call_alike("on_train_start")
        self.validation_loader_of = self.epoch  # the epoch for which the loader was made
        every, begun = trainer.reload_dataloaders_every_n_epochs, False
        while not self.done():
            if every and begun and self.epoch % every == 0:
                source = self.open_source(trainer.reload_train_dataloader())
                self.pace.plan(self.batches)
            if begun:
                trainer.logs.start(training=True)
            begun = True
            self.run_epoch(module, source)
            self.phase = Phase.COMPLETE
            if not self.skipped:
                trainer.call("on_epoch_complete")
            self.epoch += 1
            self.phase, self.position.at_epoch_start = Phase.BETWEEN, None
        trainer.logs.open = False
        trainer.runtime.strategy.finish(module)
        trainer.call("on_train_end")

    def open_source(self, source: Any) -> Any:
        """Note how many batches an epoch of `source` has, as far as it is known."""
        self.limit = number_of_batches(source, self.trainer.limits["train"])
        self.length = self.batches = known_length(source, self.limit)
        return source

    def set_up(self, module: Module) -> None:
        """The optimizers and schedulers, as the strategy wants them."""
        trainer, strategy = self.trainer, self.trainer.runtime.strategy
        parts = strategy.data_place()[1] if trainer.cuts_batches else 1
        trainer.runtime.precision.cut(parts, trainer.runtime.group)
        held = set(module.parameters())  # also what a strategy puts others in the place of
        strategy.setup_module(module)
        self.norms = JoinedNorms(trainer.runtime, module if self.joins_norms() else None)
        configured = module.configure_optimizers()
        read = optimizers.read(configured, module.automatic_optimization)
        made, schedulers, trainer.optimizer_frequencies = read
        optimizers.follow_parameters(made)
        self.wants_closure = any(map(wants_closure, made))  # asked before an engine wraps them
        strategy.check(features_of_optimizers(made, self.wants_closure))
        if trainer.runtime.world_size > 1 and not trainer.whole:
            optimizers.check_held(module, held, made)
        trainer.optimizers = strategy.setup_optimizers(module, made)
        if module.automatic_optimization and not trainer.optimizers:
            trainer.print(optimizers.without_any(configured), file=sys.stderr)
        optimizers.rebind(schedulers, made, trainer.optimizers)
        self.own_names = OwnNames(trainer.runtime, module, made, trainer.optimizers)
        trainer.lr_scheduler_configs = schedulers

    def call_alike(self, name: str) -> None:
        """A hook outside of the batches: what the module's own draws there, such as the samples of an epoch, rank 0
        draws for all. What goes through the module there is no share of a batch.
        """
        trainer = self.trainer
        assert trainer.module is not None
        with self.norms.apart(), rank_zeros_draws(trainer.runtime, trainer.whole or not filled(trainer.module, name)):
            trainer.call(name)

    def around_hook(self, name: str, hook: Callable[..., Any]) -> Callable[..., Any]:
        """The user's own hook of this name, as the strategy wants it called."""
        strategy = self.trainer.runtime.strategy
        if self.own_names is None:
            return hook
        if name in BETWEEN_BATCHES:
            return strategy.around_hook(self.own_names.around_hook(hook))
        if name in WITH_GRADIENTS:
            return with_gradients(strategy, hook)
        return strategy.around_batch_hook(self.draws.around_hook(hook)) if name in AT_BATCHES else hook

    def joins_norms(self) -> bool:
        """Does batch norm measure the batches of all processes together? (Not in a proof's run without batch norm.)"""
        trainer, strategy = self.trainer, self.trainer.runtime.strategy
        divided = strategy.data_place()[1] == trainer.world_size > 1 and not trainer.whole
        one_device = not strategy.one_process_a_node  # dp and ddp2 measure each device's piece
        return divided and one_device and trainer.sync_batchnorm and not environment.option("still")

    def choose_runner(self, module: Module) -> Any:
        if not module.automatic_optimization:
            return ManualStep(self.trainer, module, self)
        kind = SeveralOptimizers if len(self.trainer.optimizers) > 1 else AutomaticStep
        return kind(self.trainer, module, self)

    def sanity_check(self, module: Module) -> None:
        steps = self.trainer.num_sanity_val_steps
        if not steps or not self.pace.validates:
            return
        drawn = randomness.capture()
        self.trainer.sanity_checking = True
        self.trainer.call("on_sanity_check_start")
        self.validation.run(module, self.trainer.val_dataloaders, None if steps == -1 else steps)
        self.trainer.call("on_sanity_check_end")
        self.trainer.sanity_checking = False
        self.trainer.metrics.clear()  # of steps; those of its epoch were not published
        randomness.restore(drawn)  # training draws what it draws without the check

    def done(self) -> bool:
        trainer = self.trainer
        if self.batches == 0 or (trainer.max_steps != -1 and self.global_step >= trainer.max_steps):
            return True
        if trainer.max_epochs != -1 and self.epoch >= trainer.max_epochs:
            return True
        return self.stopping.now()

    # -- one epoch ------------------------------------------------------------------------------------------------

    def run_epoch(self, module: Module, source: Any) -> None:
        trainer = self.trainer
        self.epoch_ended = self.at_epoch_end = self.batches_over = self.skipped = False
        self.phase, self.batches = Phase.READY, self.length
        self.outputs: list[Any] = []  # of the steps, for training_epoch_end
        for loader in loaders_of(trainer.train_dataloader):
            set_epoch(loader, self.epoch)
        self.call_alike("on_train_epoch_start")
        if self.skipped:
            trainer.logs.close()
            return
        self.before_epoch, self.batch_idx = self.before_epoch + self.batch_idx + 1, -1
        self.phase, self.last, self.ahead = Phase.STARTED, False, None
        self.schedules = Schedules(trainer)  # a callback may have brought one
        accumulate = accumulation(trainer.accumulation_table, self.epoch)
        self.runner.start_epoch(accumulate)
        if trainer.progress is not None:
            trainer.progress.start(trainer)
        self.draws.forget()
        batches = self.position.batches(source)
        if self.batches is None:
            batches = self.ahead = Ahead(iter(batches), self, accumulate > 1 or self.asks_for_last)
        self.exhausted = False
        if not self.stopping.after_batch():  # of the epoch before, or a hook has asked since
            self.run_batches(batches)
        trainer.runtime.forget_share()
        trainer.logs.in_step = False
        self.draws.learned()
        self.end_epoch(module)

    def run_batches(self, batches: Any) -> None:
        """The step loop."""
        trainer, logs, finished = self.trainer, self.trainer.logs, self.runner.finished
        run_step = self.draws.around(
            uncounted(around(trainer.profiler, "run_training_batch", self.runner.run), trainer)
        )
        batches = through(trainer.profiler, "train_dataloader_next", batches)
        batch_start, batch_end = trainer.hook("on_train_batch_start"), trainer.hook("on_train_batch_end")
        if self.keeps_outputs:
            batch_end = keeping(batch_end, self.outputs)
        place = trainer.placer()
        if place not in (None, trainer.runtime.place_batch):
            place = self.draws.around_hook(place)  # hooks of the user's own
        every = trainer.log_every_n_steps if trainer.loggers else 0
        schedules, pace, stopping = self.schedules, self.pace, self.stopping
        max_steps = trainer.max_steps if trainer.max_steps != -1 else math.inf
        progress = trainer.progress
        refresh = progress.every(self.batches) if progress is not None else 0

        for batch_idx, batch in batches:
            self.batch_idx, self.last = batch_idx, (last := batch_idx + 1 == self.batches)
            if place is not None:
                batch = place(batch)
            logs.batch, logs.in_step = batch, True
            logs.batches[None] += 1
            if batch_start is not None and batch_start(batch, batch_idx) == -1:
                self.skip_rest(batch_idx)
                return
            stepped, outputs = run_step(batch, batch_idx)
            if stepped:
                self.logged_steps += 1
                if schedules.at_steps:
                    schedules.step("step", batch_idx + 1, on_metric=False)
            if last and schedules.at_epochs:
                schedules.step("epoch", self.epoch + 1, on_metric=False)
            if batch_end is not None:
                batch_end(finished(outputs), batch, batch_idx)
            if every and stepped and (self.logged_steps % every == 0 or trainer.should_stop):
                trainer.metrics.send_step(self.logged_steps - 1)
            if progress is not None and (batch_idx + 1) % refresh == 0:
                progress.update(trainer, batch_idx + 1)
            stop = stopping.after_batch()
            if pace.validates and pace.due(batch_idx, last, stop):
                self.validate(last, stepped)
            if stepped and schedules.at_steps:
                schedules.step("step", batch_idx + 1, on_metric=True)
            if stop or self.epoch_ended or self.global_step >= max_steps or stopping.now():
                return
        self.exhausted = self.last = True

    def validate(self, last: bool, stepped: bool) -> None:
        """Validation inside the epoch; after its last batch, too."""
        trainer, module = self.trainer, self.trainer.module
        assert module is not None
        self.runner.rest()
        every = trainer.reload_dataloaders_every_n_epochs
        if every and self.epoch - self.validation_loader_of >= every:
            trainer.reload_validation_dataloaders()
            self.validation_loader_of = self.epoch
        if last:
            self.end_batches()
        self.at_epoch_end, self.stepped = last, stepped
        if stepped and self.clears_gradients(module):
            module.on_validation_model_zero_grad()
        with rank_zeros_draws(trainer.runtime, trainer.whole or not trainer.validates_whole):
            self.validation.run(module, trainer.val_dataloaders)
        self.validation_draws.learned()
        self.draws.forget()
        trainer.logs.in_step = self.stepped = True
        self.pace.last = time.monotonic()

    def clears_gradients(self, module: Module) -> bool:
        """Steps by hand may go on adding to theirs after a validation, unless the module says what happens."""
        from .module import Module as Base

        return module.automatic_optimization or overridden(module, "on_validation_model_zero_grad", Base)

    def end_batches(self) -> None:
        """Once an epoch, also where nobody knew that the last batch was the last."""
        if not self.batches_over:
            self.batches_over = True
            self.call_alike("on_train_batches_end")

    def skip_rest(self, batch_idx: int) -> None:
        """on_train_batch_start said -1: the epoch is over as if the batch before had been its last."""
        self.schedules.step("step", batch_idx + 1, on_metric=False)
        self.schedules.step("epoch", self.epoch + 1, on_metric=False)
        self.at_epoch_end = self.last = True

    def end_epoch(self, module: Module) -> None:
        """What was not done at the last batch, because nobody knew that it was; the hooks; the epoch's values.

        Callbacks that watch values are called when all of them are known.
        """
        trainer = self.trainer
        self.runner.rest()
        reached = self.batch_idx + 1 == self.batches or self.at_epoch_end
        if not reached and (self.epoch_ended or (self.exhausted and self.batch_idx >= 0)):
            self.schedules.step("epoch", self.epoch + 1, on_metric=False)
            if self.pace.due_at_end():
                self.validate(last=True, stepped=True)
            reached = True
        self.end_batches()
        if trainer.whole and not self.told_draws:
            self.told_draws = tell_draws_apart(trainer.runtime)
        self.at_epoch_end, self.batches, self.phase = True, self.length, Phase.PROCESSED
        trainer.logs.in_step = False
        values = trainer.logs.reduce()
        trainer.metrics.publish(values)
        if self.keeps_outputs:
            module.training_epoch_end(self.outputs)
        watching = [cb for cb in trainer.callbacks if getattr(cb, "watches_metrics", False)]
        others = [cb for cb in trainer.callbacks if cb not in watching]
        ended = find_hook("on_train_epoch_end", trainer, others, module)
        if ended is not None:
            whole = trainer.whole or not filled(module, "on_train_epoch_end")
            with self.norms.apart(), rank_zeros_draws(trainer.runtime, whole):
                ended()
            if trainer.whole:
                draw_alike(trainer.runtime, True)  # rank 0 alone may have gone over a loader there
        late = trainer.logs.reduce()
        trainer.metrics.publish(late)
        ended = find_hook("on_train_epoch_end", trainer, watching, None)
        if ended is not None:
            with self.norms.apart():
                ended()
        self.stopping.agree()
        if reached:
            self.schedules.step("epoch", self.epoch + 1, on_metric=True)
        trainer.metrics.send({**values.logged, **late.logged}, trainer.metrics.step_now())
        trainer.logs.close()

    def is_last(self, batch_idx: int) -> bool:
        """Is this the epoch's last batch? False while the loader's length is unknown."""
        return batch_idx + 1 == self.batches

    def estimated_steps(self) -> float:
        """Optimizer steps of the whole fit, as far as they are known."""
        trainer = self.trainer
        if self.batches is None or trainer.max_epochs == -1:
            return trainer.max_steps if trainer.max_steps != -1 else math.inf
        steps = sum(
            math.ceil(self.batches / accumulation(trainer.accumulation_table, epoch))
            for epoch in range(max(trainer.max_epochs, 0))
        )
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


def keeping(batch_end: Callable[..., Any] | None, kept: list[Any]) -> Callable[..., Any]:
    """`batch_end`, and before it what the step gave goes to `kept`, its loss detached."""

    def keep(outputs: Any, *args: Any) -> Any:
        if outputs:
            kept.append(collectives.map_leaves(outputs, _detached))
        return batch_end(outputs, *args) if batch_end is not None else None

    return keep


def _detached(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf

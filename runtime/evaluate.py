"""Validation, test and prediction: whole batches, each on one rank, and one message at the end of the epoch."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import torch

from .callbacks.prediction_writer import BasePredictionWriter
from .collectives import gather_objects
from .data import length_of, to_cpu
from .data.combined import as_combined
from .data.samples import telling_indices, with_indices
from .errors import ConfigurationError
from .hooks import overridden, step_caller, takes
from .metrics.name import EPOCH
from .metrics.report import Values
from .profilers import around

if TYPE_CHECKING:
    from .module import Module
    from .trainer import Trainer

HOOKS = {"validate": "validation", "test": "test", "predict": "predict"}


class EvaluationLoop:
    """One stage (`validate`, `test`, `predict`). The module itself is called, never its wrapper: no messages
    between batches.
    """

    def __init__(self, trainer: Trainer, stage: str):
        self.trainer, self.stage = trainer, stage
        self.word = HOOKS[stage]
        self.has_run = False  # the sanity check does not count
        self.sent: Counter = Counter()  # batches of each loader over all epochs: what loggers count by

    def run_alone(self, module: Module, loaders: Any) -> Any:
        """As `trainer.validate` and its like: the results, one a loader; None where nothing was to be predicted."""
        self.trainer.runtime.follow_buffers(module)
        results = self.run(module, loaders)
        if self.stage == "predict":
            return (results if len(results) > 1 else results[0]) if results else None
        return results

    def run(self, module: Module, loaders: Any, limit: int | None = None) -> list[Any]:
        """One epoch over the loaders, with gradients off and the module in eval mode; modes come back as they were.

        `limit`: at most so many batches of each loader (the sanity check).
        """
        trainer = self.trainer
        every = as_list(loaders)
        wanted = [at_most(number_of_batches(loader, trainer.limits[self.stage]), limit) for loader in every]
        if not any(number != 0 for number in wanted):
            return []
        self.several = len(every) > 1
        check_loader_index(module, f"{self.word}_step", self.several)
        around = trainer.logs.start(training=False)
        trainer.logs.open = self.stage != "predict"
        trainer.in_order.kept = []  # of an evaluation that was interrupted
        modes = {part: part.training for part in module.modules()}
        self.keeps_outputs = self.stage == "predict" or filled(module, f"{self.word}_epoch_end")
        alone = (trainer.fit_loop.norms.apart(), trainer.runtime.strategy.evaluation(module))
        with evaluation_mode(trainer), self.restoring(module, modes), self.repeating(), alone[0], alone[1]:
            getattr(module, f"on_{self.word}_model_eval")()
            trainer.call(f"on_{self.word}_start")
            trainer.call(f"on_{self.word}_epoch_start")
            outputs = [self.one_loader(module, *numbered) for numbered in zip(every, count(), wanted)]
            results = self.end_epoch(module, outputs)
            trainer.call(f"on_{self.word}_end")
        trainer.logs.resume(around)
        return results

    def one_loader(self, module: Module, loader: Any, index: int, wanted: int | None) -> list[Any]:
        """All batches of one loader on this rank. The evaluation loop, from top to bottom."""
        trainer, logs = self.trainer, self.trainer.logs
        tells_indices = self.stage == "predict" and any(
            isinstance(cb, BasePredictionWriter) for cb in trainer.callbacks
        )
        if tells_indices and trainer.world_size == 1:
            loader = with_indices(loader)
        divided = trainer.divide(loader, train=False, limit=wanted)
        name = f"{self.word}_step"
        step = step_caller(module, name, trainer.runtime.strategy.step(module, name))
        step = around(trainer.profiler, name, step)
        batch_start = trainer.hook(f"on_{self.word}_batch_start")
        batch_end = trainer.hook(f"on_{self.word}_batch_end")
        extra = (index,) if self.several else ()
        logs.dataloader_idx = index if self.several else None
        logs.in_step = True
        predicting, keeping, outputs = self.stage == "predict", self.keeps_outputs, []
        place = trainer.placer(index)
        logs.uneven = name if self.uneven(divided, loader, wanted) else None
        precision = trainer.runtime.precision
        context = contextlib.nullcontext if precision.plain else precision.forward_context
        sends = bool(trainer.loggers) and not trainer.sanity_checking

        batches = self.numbered(divided, loader, wanted)
        if trainer.state == "fit":
            batches = trainer.fit_loop.validation_draws.watched(batches)
        for batch_idx, batch in telling_indices(trainer, divided, batches) if tells_indices else batches:
            if place is not None:
                batch = place(batch)
            logs.batch = batch
            logs.batches[logs.dataloader_idx] += 1
            if batch_start is not None:
                batch_start(batch, batch_idx, *extra)
            with context():
                output = step(batch, batch_idx, *extra)
            if keeping and (predicting or output is not None):
                outputs.append(to_cpu(output) if predicting and not trainer.runtime.on_cpu else output)
            if batch_end is not None:
                batch_end(output, batch, batch_idx, *extra)
            if sends:
                trainer.metrics.send_evaluation_step(self.sent[index])
                self.sent[index] += 1
        logs.batch = None
        if self.several:
            logs.end_loader()
        return self.gathered(outputs) if predicting else outputs

    def uneven(self, divided: Any, loader: Any, wanted: int | None) -> bool:
        """May ranks have different numbers of this loader's batches? None is padded, so that each counts once."""
        _, parts = self.trainer.runtime.strategy.data_place()
        total = at_most(wanted, length_of(loader))
        return divided is not loader and parts > 1 and (total == math.inf or total % parts != 0)

    def numbered(self, divided: Any, loader: Any, wanted: int | None) -> Iterator[tuple[int, Any]]:
        """Batches with the numbers they have in one process."""
        runtime = self.trainer.runtime
        part, parts = runtime.strategy.data_place()
        if divided is loader or parts == 1:
            yield from enumerate(itertools.islice(divided, wanted))
        else:
            yield from zip(itertools.count(part, parts), divided)

    def gathered(self, outputs: list[Any]) -> list[Any]:
        """The outputs of all ranks in the loader's order, on every rank."""
        runtime = self.trainer.runtime
        if runtime.world_size == 1:
            return outputs
        every = runtime.distinct(gather_objects(outputs, runtime.group, runtime.world_size, "predictions"))
        rounds = itertools.zip_longest(*every, fillvalue=_NOTHING)
        return [output for one_round in rounds for output in one_round if output is not _NOTHING]

    def end_epoch(self, module: Module, outputs: list[Any]) -> list[Any]:
        """The epoch's values, before its hooks and with what they log; the results, one a loader."""
        trainer, metrics = self.trainer, self.trainer.metrics
        trainer.logs.in_step, trainer.logs.dataloader_idx = False, None
        trainer.in_order.make(module)
        if self.stage == "predict":
            trainer.call("on_predict_epoch_end")
            return outputs
        values = trainer.logs.reduce()
        if not trainer.sanity_checking:
            metrics.publish(values)
        if self.keeps_outputs:
            getattr(module, f"{self.word}_epoch_end")(outputs if self.several else outputs[0])
        trainer.call(f"on_{self.word}_epoch_end")
        late = trainer.logs.reduce()
        trainer.logs.close()
        if not trainer.sanity_checking:
            metrics.publish(late)
            metrics.send({**values.logged, **late.logged}, metrics.step_now())
            self.has_run = True
        return per_loader(values, late, len(outputs))

    @contextlib.contextmanager
    def repeating(self) -> Iterator[None]:
        """What the ranks bring together meanwhile is rank 0's, where all of them evaluate everything."""
        runtime = self.trainer.runtime
        before, runtime.repeated = runtime.repeated, runtime.repeated or self.trainer.validates_whole
        try:
            yield
        finally:
            runtime.repeated = before

    @contextlib.contextmanager
    def restoring(self, module: Module, modes: dict[Any, bool]) -> Iterator[None]:
        """Afterwards the parts train that trained before; or as the module's own hook wants it."""
        hook = f"on_{self.word}_model_train"
        try:
            yield
        finally:
            if filled(module, hook):
                getattr(module, hook)()
            else:
                for part, mode in modes.items():
                    part.training = mode


_NOTHING = object()


def filled(module: Module, name: str) -> bool:
    """Has the module a method of its own under this name?"""
    from .module import Module as Base

    return overridden(module, name, Base)


def evaluation_mode(trainer: Trainer) -> contextlib.AbstractContextManager:
    """Without gradients; outside of `fit`, `Trainer(inference_mode=True)` forbids them for what is made inside, too."""
    return torch.inference_mode() if trainer.inference_mode and trainer.state != "fit" else torch.no_grad()


def check_loader_index(module: Module, name: str, several: bool) -> None:
    """With several loaders a step has to take their number."""
    step = getattr(module, name)
    if several and not takes(step, "dataloader_idx", 3):
        raise ConfigurationError(f"several loaders: {name} needs a third argument, dataloader_idx")


def number_of_batches(loader: Any, limit: float | None) -> int | None:
    """How many of the script's batches are wanted; None: all of them. A fraction needs a loader with a length, and
    has to leave a batch of it.
    """
    if limit is None or isinstance(limit, int):
        return limit
    length = length_of(loader)
    if limit and length == math.inf:
        raise ConfigurationError(
            f"a limit of {limit}: a fraction needs a loader with a length; give a number of batches"
        )
    number = int(length * limit) if limit else 0
    if limit and length and not number:
        raise ConfigurationError(
            f"a limit of {limit} leaves none of the loader's {length} batches; at least one is needed"
        )
    return number


def at_most(number: Any, limit: Any) -> Any:
    """The smaller one; None is no limit."""
    return number if limit is None else limit if number is None else min(number, limit)


def per_loader(values: Values, late: Values, loaders: int) -> list[dict[str, float]]:
    """One dict a loader: its own values, and those that belong to no loader."""
    shared = {key: float(value) for key, value in late.logged.items()}
    if loaders == 1:
        return [{**{key: float(value) for key, value in values.logged.items()}, **shared}]
    results: list[dict[str, float]] = [{} for _ in range(loaders)]
    for key, value in values.logged.items():
        for index in range(loaders) if values.source[key] == EPOCH else [values.source[key]]:
            results[index][key] = float(value)
    return [{**result, **shared} for result in results]


def as_list(loaders: Any) -> list[Any]:
    """The loaders of an evaluation: one, several, or none."""
    combined = as_combined(loaders, "sequential")
    if combined is None:
        return [] if loaders is None else [loaders]
    return combined.flattened if combined.mode == "sequential" else [combined]

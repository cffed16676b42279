"""Validation, test and prediction: whole batches, each on one rank, and one message at the end of the epoch."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .checkpoint.state import load_weights
from .collectives import gather_objects
from .data import to_cpu
from .hooks import overridden

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

    def run_alone(self, module: Module, loaders: Any, ckpt_path: Any = None) -> list[Any]:
        """As `trainer.validate` and its like: the results, one a loader."""
        if ckpt_path is not None:
            load_weights(self.trainer, self.trainer.checkpoint_path(ckpt_path))
        self.trainer.runtime.follow_buffers(module)
        results = self.run(module, loaders)
        if self.stage == "predict":
            return results if len(results) != 1 else results[0]
        return results

    def run(self, module: Module, loaders: Any, limit: float | None = None) -> list[Any]:
        """One epoch over the loaders, with gradients off and the module in eval mode; modes come back as they were."""
        trainer = self.trainer
        around = trainer.logs.start(training=False)
        modes = {part: part.training for part in module.modules()}
        self.keeps_outputs = self.stage == "predict" or filled(module, f"{self.word}_epoch_end")
        module.eval()
        try:
            with torch.no_grad(), trainer.runtime.strategy.evaluation(module):
                trainer.call(f"on_{self.word}_start")
                trainer.call(f"on_{self.word}_epoch_start")
                several = len(as_list(loaders)) > 1
                outputs = [
                    self.one_loader(module, loader, index if several else None, limit)
                    for index, loader in enumerate(as_list(loaders))
                ]
                trainer.logs.in_step, trainer.logs.dataloader_idx = False, None
                if self.keeps_outputs and self.stage != "predict":
                    getattr(module, f"{self.word}_epoch_end")(outputs if several else outputs[0])
                trainer.call(f"on_{self.word}_epoch_end")
                values = self.end_epoch()
                trainer.call(f"on_{self.word}_end")
        finally:
            for part, mode in modes.items():
                part.training = mode
        trainer.logs.resume(around)
        return outputs if self.stage == "predict" else per_loader(values, len(outputs))

    def one_loader(self, module: Module, loader: Any, index: int | None, limit: float | None) -> list[Any]:
        """All batches of one loader on this rank. The evaluation loop, from top to bottom."""
        trainer, logs = self.trainer, self.trainer.logs
        wanted = number_of_batches(loader, trainer.limits[self.stage] if limit is None else limit)
        divided = trainer.divide(loader, train=False, limit=wanted)
        step = trainer.runtime.strategy.step(module, f"{self.word}_step")
        batch_start = trainer.hook(f"on_{self.word}_batch_start")
        batch_end = trainer.hook(f"on_{self.word}_batch_end")
        extra = () if index is None else (index,)
        logs.dataloader_idx = index
        logs.in_step = True
        predicting, keeping, outputs = self.stage == "predict", self.keeps_outputs, []
        place, precision = trainer.runtime.place_batch, trainer.runtime.precision

        for batch_idx, batch in self.numbered(divided, loader, wanted):
            batch = place(batch)
            logs.batch = batch
            logs.batches[index] += 1
            if batch_start is not None:
                batch_start(batch, batch_idx, index or 0)
            with precision.forward_context() if not precision.plain else contextlib.nullcontext():
                output = step(batch, batch_idx, *extra)
            if keeping and (predicting or output is not None):
                outputs.append(to_cpu(output) if predicting and not trainer.runtime.on_cpu else output)
            if batch_end is not None:
                batch_end(output, batch, batch_idx, index or 0)
        logs.batch = None
        return self.gathered(outputs) if predicting else outputs

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
        every = runtime.distinct(gather_objects(outputs, runtime.group, runtime.world_size))
        rounds = itertools.zip_longest(*every, fillvalue=_NOTHING)
        return [output for one_round in rounds for output in one_round if output is not _NOTHING]

    def end_epoch(self) -> dict[str, float]:
        """Bring the epoch's values together and publish them."""
        values = self.trainer.logs.end_epoch()
        if not self.trainer.sanity_checking:
            self.trainer.publish(*values)
        return values[1]


_NOTHING = object()


def filled(module: Module, name: str) -> bool:
    """Has the module a method of its own under this name?"""
    from .module import Module as Base

    return overridden(module, name, Base)


def number_of_batches(loader: Any, limit: float | None) -> int | None:
    """How many of the script's batches are wanted; None: all of them. A fraction needs a loader with a length."""
    if limit is None or isinstance(limit, int):
        return limit
    return int(len(loader) * limit)


def per_loader(values: dict[str, float], loaders: int) -> list[dict[str, float]]:
    """One dict a loader: what carries a loader's number goes to that loader, the rest to all."""
    if loaders == 1:
        return [values]
    mark = "/dataloader_idx_"
    return [{k: v for k, v in values.items() if mark not in k or k.endswith(f"{mark}{i}")} for i in range(loaders)]


def as_list(loaders: Any) -> list[Any]:
    """The loaders of an evaluation: one, several, or none."""
    if loaders is None:
        return []
    if isinstance(loaders, dict):
        return list(loaders.values())
    return list(loaders) if isinstance(loaders, Sequence) and _holds_loaders(loaders) else [loaders]


def _holds_loaders(loaders: Sequence) -> bool:
    """A list of loaders, and not a list of batches?"""
    return bool(loaders) and all(hasattr(item, "dataset") for item in loaders)

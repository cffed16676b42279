"""What Lightning calls its loops and their parts, for scripts that ask them: `trainer.fit_loop.epoch_loop.batch_idx`.

All of it follows from the fit loop and the trainer. What is not here says what to use instead.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar

from .errors import ConfigurationError

if TYPE_CHECKING:
    from .fit import FitLoop
    from .trainer import Trainer


class Phase(IntEnum):
    """How far an epoch is."""

    BETWEEN = 0  # it has not begun
    READY = 1  # on_train_epoch_start
    STARTED = 2  # its batches
    PROCESSED = 3  # on_train_epoch_end
    COMPLETE = 4


class Named:
    """Names in `instead` raise AttributeError with the way out; `settable` are the only ones that can be assigned."""

    instead: ClassVar[dict[str, str]] = {}
    settable: ClassVar[tuple[str, ...]] = ()

    def __getattr__(self, name: str) -> Any:
        said = f": use {self.instead[name]}" if name in self.instead else ""
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{said}")

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in self.settable:
            raise ConfigurationError(f"{type(self).__name__}.{name} only tells where the fit is; go on with ckpt_path=")
        super().__setattr__(name, value)


class Counts(Named):
    """How many have come so far to each point."""

    instead: ClassVar = dict.fromkeys(("started", "processed", "completed"), "ready, which counts the batches begun")

    def __init__(self, **counts: int):
        vars(self).update(counts)


class Progress(Named):
    """`current`: in this run of the loop; `total`: in all."""

    instead: ClassVar = {"is_last_batch": "trainer.is_last_batch"}

    def __init__(self, current: Counts, total: Counts, **more: Any):
        vars(self).update(current=current, total=total, **more)


class FitNames:
    """Lightning's names of the fit loop itself."""

    trainer: Trainer
    epoch: int
    batch_idx: int
    before_epoch: int
    length: int | None
    phase: Phase

    @property
    def total_batch_idx(self) -> int:
        """The number of the current batch, or of the last one, over all epochs."""
        return self.before_epoch + self.batch_idx

    @property
    def max_batches(self) -> float:
        return math.inf if self.length is None else self.length

    @property
    def max_epochs(self) -> int:
        return self.trainer.max_epochs

    @max_epochs.setter
    def max_epochs(self, value: int) -> None:
        """For a second `fit` that goes on."""
        self.trainer.max_epochs = value

    @property
    def min_epochs(self) -> int:
        return self.trainer.min_epochs

    @min_epochs.setter
    def min_epochs(self, value: int) -> None:
        self.trainer.min_epochs = value

    @property
    def max_steps(self) -> int:
        return self.trainer.max_steps

    @property
    def min_steps(self) -> int | None:
        return self.trainer.min_steps

    @property
    def epoch_progress(self) -> Progress:
        points = {"ready": Phase.READY, "started": Phase.STARTED, "processed": Phase.PROCESSED}
        counts = {name: self.epoch + (self.phase >= phase) for name, phase in points.items()}
        counts["completed"] = self.epoch + (self.phase == Phase.COMPLETE)
        return Progress(Counts(**counts), Counts(**counts))

    @property
    def epoch_loop(self) -> EpochNames:
        return EpochNames(self)  # type: ignore[arg-type]


class EpochNames(Named):
    """`trainer.fit_loop.epoch_loop`."""

    settable: ClassVar = ("max_steps", "min_steps")
    instead: ClassVar = {
        "_batches_that_stepped": "self.log, or trainer.global_step as the step of a logger",
        "automatic_optimization": "trainer.global_step for the steps that were made",
        "manual_optimization": "trainer.global_step for the steps that were made",
        "scheduler_progress": "the schedulers in trainer.lr_scheduler_configs",
    }

    def __init__(self, loop: FitLoop):
        self._loop = loop

    @property
    def trainer(self) -> Trainer:
        return self._loop.trainer

    @property
    def batch_idx(self) -> int:
        return self._loop.batch_idx

    @property
    def total_batch_idx(self) -> int:
        return self._loop.total_batch_idx

    @property
    def global_step(self) -> int:
        return self._loop.global_step

    @property
    def max_steps(self) -> int:
        return self.trainer.max_steps

    @max_steps.setter
    def max_steps(self, value: int) -> None:
        self.trainer.max_steps = value

    @property
    def min_steps(self) -> int | None:
        return self.trainer.min_steps

    @min_steps.setter
    def min_steps(self, value: int | None) -> None:
        self.trainer.min_steps = value

    @property
    def batch_progress(self) -> Progress:
        loop = self._loop
        current, total = Counts(ready=loop.batch_idx + 1), Counts(ready=loop.total_batch_idx + 1)
        return Progress(current, total, is_last_batch=self.trainer.is_last_batch)

    @property
    def val_loop(self) -> EvaluationNames:
        return EvaluationNames(self.trainer, "validate")


class EvaluationNames(Named):
    """`trainer.validate_loop`, `test_loop` and `predict_loop`."""

    instead: ClassVar = {
        "batch_progress": "batch_idx, which the step and its hooks get",
        "epoch_batch_indices": "BasePredictionWriter(write_interval='epoch'), which gets them",
        "predictions": "what trainer.predict gives",
        "return_predictions": "trainer.predict(return_predictions=...)",
        "verbose": "trainer.validate(verbose=...)",
    }

    def __init__(self, trainer: Trainer, stage: str):
        self._trainer, self._stage = trainer, stage

    @property
    def trainer(self) -> Trainer:
        return self._trainer

    @property
    def max_batches(self) -> list[float]:
        """Of each loader."""
        trainer = self._trainer
        if trainer.sanity_checking:
            return trainer.num_sanity_val_batches
        numbers = {"validate": "num_val_batches", "test": "num_test_batches", "predict": "num_predict_batches"}
        return getattr(trainer, numbers[self._stage])

    @property
    def num_dataloaders(self) -> int:
        return len(self.max_batches)

    @property
    def inference_mode(self) -> bool:
        return self._trainer.inference_mode

    @property
    def current_batch_indices(self) -> list[int]:
        """Of `predict`, where a BasePredictionWriter wants them."""
        return self._trainer.batch_indices or []

"""How long a run has taken, and a limit to it."""

from __future__ import annotations

import time
from typing import Any

from ..arguments import checked_time
from ..errors import ConfigurationError
from .base import Callback

STAGES = {"train": "train", "fit": "train", "validate": "validate", "validation": "validate", "test": "test"}


class Timer(Callback):
    """Seconds of training, validation and testing; `duration` ("DD:HH:MM:SS", a timedelta, or its arguments as a dict)
    ends training. All ranks decide alike: rank 0's clock counts.
    """

    def __init__(self, duration: Any = None, interval: str = "step", verbose: bool = True):
        if interval not in ("step", "epoch"):
            raise ConfigurationError(f"interval={interval!r}: 'step' or 'epoch'")
        self.duration, self.interval, self.verbose = checked_time(duration, "duration"), interval, verbose
        self.begun: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.before = 0.0  # of training, in the run that this one goes on from

    def start_time(self, stage: str = "train") -> float | None:
        """By a clock that only moves on; None where the stage has not begun."""
        return self.begun.get(STAGES[stage])

    def end_time(self, stage: str = "train") -> float | None:
        return self.ended.get(STAGES[stage])

    def time_elapsed(self, stage: str = "train") -> float:
        """Seconds; 0 where the stage has not begun."""
        stage = STAGES[stage]
        if stage not in self.begun:
            return self.before if stage == "train" else 0.0
        passed = self.ended.get(stage, time.monotonic()) - self.begun[stage]
        return passed + (self.before if stage == "train" else 0.0)

    def time_remaining(self, stage: str = "train") -> float | None:
        return None if self.duration is None else self.duration - self.time_elapsed(stage)

    def state_dict(self) -> dict[str, Any]:
        return {"time_elapsed": {stage: self.time_elapsed(stage) for stage in ("train", "validate", "test")}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.before = state_dict["time_elapsed"]["train"]

    def on_fit_start(self, trainer: Any, module: Any) -> None:
        self._check(trainer)  # a run that goes on may have no time left

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._begin("train")

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        if self.interval == "step":
            self._check(trainer)

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        if self.interval == "epoch":
            self._check(trainer)

    def on_train_end(self, trainer: Any, module: Any) -> None:
        self.ended["train"] = time.monotonic()

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        self._begin("validate")

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        self.ended["validate"] = time.monotonic()

    def on_test_start(self, trainer: Any, module: Any) -> None:
        self._begin("test")

    def on_test_end(self, trainer: Any, module: Any) -> None:
        self.ended["test"] = time.monotonic()

    def _begin(self, stage: str) -> None:
        self.begun[stage] = time.monotonic()
        self.ended.pop(stage, None)

    def _check(self, trainer: Any) -> None:
        if self.duration is None or not trainer.runtime.broadcast(self.time_elapsed() >= self.duration):
            return
        trainer.should_stop = trainer.stop_agreed = True
        if self.verbose:
            trainer.print(f"the time limit is reached after {self.time_elapsed():.0f} s")

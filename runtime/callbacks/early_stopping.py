"""Stop when a metric has not become better for a while."""

from __future__ import annotations

import math
from typing import Any

import torch

from .base import Callback
from .monitor import BETTER, WORST, checked_mode, current


class EarlyStopping(Callback):
    """Arguments as Lightning's. All ranks decide alike: rank 0's value counts."""

    watches_metrics = True  # called at the end of an epoch when its values are known

    def __init__(
        self,
        monitor: str,
        min_delta: float = 0.0,
        patience: int = 3,
        verbose: bool = False,
        mode: str = "min",
        strict: bool = True,
        check_finite: bool = True,
        stopping_threshold: float | None = None,
        divergence_threshold: float | None = None,
        check_on_train_epoch_end: bool | None = None,
        log_rank_zero_only: bool = False,
    ):
        self.monitor, self.patience, self.verbose, self.strict = monitor, patience, verbose, strict
        self.mode = checked_mode(mode)
        self.min_delta = abs(min_delta) * (1 if mode == "max" else -1)
        self.check_finite = check_finite
        self.stopping_threshold, self.divergence_threshold = stopping_threshold, divergence_threshold
        self.check_on_train_epoch_end = check_on_train_epoch_end
        self.best = WORST[mode]
        self.wait_count = 0
        self.stopped_epoch = 0
        self.stopping_reason_message: str | None = None

    @property
    def state_key(self) -> str:
        return f"EarlyStopping[{self.monitor},{self.mode}]"

    @property
    def best_score(self) -> torch.Tensor:
        return torch.tensor(self.best)

    def state_dict(self) -> dict[str, Any]:
        counted = {"wait_count": self.wait_count, "stopped_epoch": self.stopped_epoch, "patience": self.patience}
        return {**counted, "best_score": self.best, "stopping_reason_message": self.stopping_reason_message}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.wait_count, self.best = state_dict["wait_count"], float(state_dict["best_score"])
        self.stopped_epoch, self.patience = state_dict["stopped_epoch"], state_dict.get("patience", self.patience)
        self.stopping_reason_message = state_dict.get("stopping_reason_message")

    def _after_training(self, trainer: Any) -> bool:
        asked = self.check_on_train_epoch_end
        return asked if asked is not None else trainer.val_check_interval == trainer.check_val_every_n_epoch == 1.0

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if trainer.state == "fit" and not trainer.sanity_checking and not self._after_training(trainer):
            self.check(trainer)

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        if self._after_training(trainer):
            self.check(trainer)

    def check(self, trainer: Any) -> None:
        value = current(trainer, self.monitor, self.strict and not trainer.fast_dev_run)
        if value is None:
            return
        value = trainer.runtime.broadcast(value)
        reason = self.verdict(value)
        if reason:
            trainer.should_stop = trainer.stop_agreed = True
            self.stopped_epoch = trainer.current_epoch
            self.stopping_reason_message = f"early stopping: {self.monitor} {reason}"
            if self.verbose:
                trainer.print(self.stopping_reason_message)

    def verdict(self, value: float) -> str | None:
        """Why to stop at this value, or None."""
        better = BETTER[self.mode]
        if self.check_finite and not math.isfinite(value):
            return f"is {value}"
        if self.stopping_threshold is not None and better(value, float(self.stopping_threshold)):
            return f"has reached {self.stopping_threshold}"
        if self.divergence_threshold is not None and better(-value, -float(self.divergence_threshold)):
            return f"has passed {self.divergence_threshold}"
        if better(value - self.min_delta, self.best):
            self.best, self.wait_count = value, 0
            return None
        self.wait_count += 1
        return f"has not improved {self.wait_count} times" if self.wait_count >= self.patience else None

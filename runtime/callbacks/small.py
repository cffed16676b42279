"""Callbacks of a few lines: functions as hooks, accumulation that changes with the epoch, a table of the module."""

from __future__ import annotations

from typing import Any

from ..arguments import checked_accumulation
from ..errors import ConfigurationError, unknown_name
from ..hooks import Hooks
from ..summary import summary
from .base import Callback


class LambdaCallback(Callback):
    """`LambdaCallback(on_train_end=lambda trainer, module: ...)`: functions in the place of hooks."""

    def __init__(self, **hooks: Any):
        for name, function in hooks.items():
            if not hasattr(Hooks, name):
                raise unknown_name("hook", name, [hook for hook in vars(Hooks) if not hook.startswith("_")])
            setattr(self, name, function)


class GradientAccumulationScheduler(Callback):
    """`scheduling`: {epoch: how many batches a step from then on}."""

    def __init__(self, scheduling: dict[int, int]):
        if not scheduling or not all(isinstance(epoch, int) and epoch >= 0 for epoch in scheduling):
            raise ConfigurationError(f"scheduling={scheduling!r}: {{epoch: batches a step}} is needed")
        self.scheduling = checked_accumulation(scheduling)

    def on_fit_start(self, trainer: Any, module: Any) -> None:
        if trainer.accumulation_table not in ({0: 1}, self.scheduling):
            raise ConfigurationError("give accumulate_grad_batches or a GradientAccumulationScheduler, not both")
        if not module.automatic_optimization:
            raise ConfigurationError(
                "GradientAccumulationScheduler: in manual optimization the step decides when to step"
            )
        trainer.accumulation_table = self.scheduling


class ModelSummary(Callback):
    """The module's table at the start of a fit. `max_depth`: of parts within parts; -1: all; 0: nothing."""

    def __init__(self, max_depth: int = 1, **_: Any):
        if max_depth < -1:
            raise ConfigurationError(f"max_depth={max_depth}: -1 (all), 0 (nothing) or a number of levels is needed")
        self.max_depth = max_depth

    def on_fit_start(self, trainer: Any, module: Any) -> None:
        if self.max_depth and not trainer.summarizes:
            trainer.print(summary(module, self.max_depth))


class ProgressBar(Callback):
    """Asks for the progress bar; it moves every `refresh_rate` batches, and 0 turns it off."""

    def __init__(self, refresh_rate: int = 1, **_: Any):
        self.refresh_rate = refresh_rate

"""Learning rates to the loggers."""

from __future__ import annotations

from typing import Any

from .base import Callback


class LearningRateMonitor(Callback):
    """Logs the learning rate of every parameter group, at steps or at epochs."""

    def __init__(self, logging_interval: str | None = None):
        self.logging_interval = logging_interval

    def rates(self, trainer: Any) -> dict[str, float]:
        found = {}
        for position, optimizer in enumerate(trainer.optimizers):
            name = f"lr-{type(optimizer).__name__}" + (f"-{position}" if position else "")
            for index, group in enumerate(optimizer.param_groups):
                key = f"{name}/pg{index + 1}" if len(optimizer.param_groups) > 1 else name
                found[key] = float(group["lr"])
        return found

    def on_train_batch_start(self, trainer: Any, module: Any, *_: Any) -> None:
        every = trainer.log_every_n_steps
        if self.logging_interval != "epoch" and every and trainer.global_step % every == 0:
            trainer.send(self.rates(trainer), trainer.global_step)

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        if self.logging_interval == "epoch":
            trainer.send(self.rates(trainer), trainer.global_step)

"""Learning rates to the loggers, and to `trainer.callback_metrics`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

from ..errors import ConfigurationError
from .base import Callback


class LearningRateMonitor(Callback):
    """Logs the learning rate of every parameter group, at "step"s or at "epoch"s; None: when its scheduler steps, and
    at both where there is none.

    Names are Lightning's: `lr-SGD`, `lr-SGD/pg2` or `lr-SGD/<the group's name>`, `lr-SGD-1` for the second SGD; or the
    `name` in the scheduler's dict.
    """

    def __init__(self, logging_interval: str | None = None, log_momentum: bool = False, log_weight_decay: bool = False):
        if logging_interval not in (None, "step", "epoch"):
            raise ConfigurationError(f"logging_interval={logging_interval!r}: 'step', 'epoch' or None")
        self.logging_interval = logging_interval
        self.log_momentum, self.log_weight_decay = log_momentum, log_weight_decay
        self.lrs: dict[str, list[float]] = {}
        self.last_momentum_values: dict[str, float] = {}
        self.last_weight_decay_values: dict[str, float] = {}

    def on_train_start(self, trainer: Any, module: Any) -> None:
        if not trainer.loggers and not trainer.fast_dev_run:  # which takes the loggers away
            raise ConfigurationError("LearningRateMonitor needs a logger: Trainer(logger=True)")

    def on_train_batch_start(self, trainer: Any, module: Any, *_: Any) -> None:
        every = trainer.log_every_n_steps
        if self.logging_interval != "epoch" and every and (trainer.fit_loop.logged_steps + 1) % every == 0:
            self.send(trainer, "step")

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        if self.logging_interval != "step":
            self.send(trainer, "epoch")

    def send(self, trainer: Any, moment: str) -> None:
        found: dict[str, float] = {}
        for name, optimizer, interval in named_optimizers(trainer):
            if self.logging_interval is None and interval not in (None, moment):
                continue
            for index, group in enumerate(optimizer.param_groups):
                found.update(self.values(group_name(name, optimizer.param_groups, index), group))
        if found:
            trainer.callback_metrics.update({name: torch.tensor(value) for name, value in found.items()})
            trainer.metrics.to_loggers(found, trainer.fit_loop.logged_steps)

    def values(self, name: str, group: dict[str, Any]) -> dict[str, float]:
        found = {name: float(group["lr"])}
        self.lrs.setdefault(name, []).append(found[name])
        if self.log_momentum:
            momentum = float(group["betas"][0] if "betas" in group else group.get("momentum", 0))
            found[f"{name}-momentum"] = self.last_momentum_values[f"{name}-momentum"] = momentum
        if self.log_weight_decay:
            decay = float(group["weight_decay"])
            found[f"{name}-weight_decay"] = self.last_weight_decay_values[f"{name}-weight_decay"] = decay
        return found


def named_optimizers(trainer: Any) -> Iterator[tuple[str, Any, str | None]]:
    """(name, optimizer, its scheduler's interval or None), those with a scheduler first."""
    seen: list[Any] = []
    types: Counter = Counter()
    scheduled = [(config.name, config.scheduler.optimizer, config.interval) for config in trainer.lr_scheduler_configs]
    for given, optimizer, interval in [*scheduled, *((None, optimizer, None) for optimizer in trainer.optimizers)]:
        if any(optimizer is other for other in seen):
            continue
        seen.append(optimizer)
        kind = type(optimizer).__name__
        number = types[kind]
        types[kind] += 1
        yield given or f"lr-{kind}" + (f"-{number}" if number else ""), optimizer, interval


def group_name(name: str, groups: list[dict[str, Any]], index: int) -> str:
    own = groups[index].get("name")
    if own is None and len(groups) > 1:
        own = f"pg{index + 1}"
    return f"{name}/{own}" if own else name

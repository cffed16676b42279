"""When learning rates change: after steps, at the end of epochs, or when a metric says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import unknown_name

if TYPE_CHECKING:
    from .trainer import Trainer


class Schedules:
    """The schedulers of a fit, by the moment at which they step. In manual optimization the module steps its own."""

    def __init__(self, trainer: Trainer):
        assert trainer.module is not None
        self.trainer, self.module = trainer, trainer.module
        configs = trainer.lr_scheduler_configs if self.module.automatic_optimization else []
        self.configs = configs
        self.at_steps = any(config.interval == "step" for config in configs)
        self.at_epochs = any(config.interval == "epoch" for config in configs)

    def step(self, interval: str, count: int, on_metric: bool) -> None:
        """Step those of this interval whose turn it is after `count` batches or epochs. `on_metric`: those that watch
        a metric, which come after validation; the others come before it.
        """
        for config in self.configs:
            if config.interval != interval or config.reduce_on_plateau != on_metric or count % config.frequency:
                continue
            metric = self.value_of(config.monitor, config.strict) if on_metric else None
            if metric is not None or not on_metric:
                self.module.lr_scheduler_step(config.scheduler, metric)

    def value_of(self, monitor: str | None, strict: bool) -> Any:
        """The metric's value; None where it was not logged. Raises ConfigurationError for that if `strict`."""
        there = self.trainer.callback_metrics
        if strict and monitor not in there:
            raise unknown_name("metric to monitor", monitor, there)
        return there.get(str(monitor))

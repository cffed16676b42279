"""Logged values on their way out: to callbacks, to the progress bar, to the loggers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .report import Values

if TYPE_CHECKING:
    from ..trainer import Trainer


class Published:
    """What `trainer.callback_metrics`, `logged_metrics` and `progress_bar_metrics` show: the last value of every name;
    of the step while an epoch runs, of the epoch when it has ended.
    """

    def __init__(self, trainer: Trainer):
        self.trainer = trainer
        self.clear()

    def clear(self) -> None:
        self.callback: dict[str, Any] = {}
        self.logged: dict[str, Any] = {}
        self.bar: dict[str, Any] = {}

    def take_step_values(self) -> None:
        """What the steps since the last call have logged."""
        logs = self.trainer.logs
        if not logs.published:
            callback, logged = logs.step_tensors()
            self.callback.update(callback)
            self.logged.update(logged)
            self.bar.update({name: float(value) for name, value in logs.step_values(bar_only=True).items()})
        self.publish(logs.hook_values())

    def publish(self, values: Values) -> None:
        """The values of an epoch; `send` brings them to the loggers."""
        self.callback.update(values.callback)
        self.logged.update(values.logged)
        self.bar.update(values.bar)

    def send_step(self, step: int) -> None:
        """What was logged at the current step of training goes to the loggers."""
        self.send(self.trainer.logs.step_values(), step)

    def send_evaluation_step(self, step: int) -> None:
        """The same of an evaluation, which counts its own steps."""
        values = self.trainer.logs.step_values()
        if values:
            self.to_loggers({name: float(value) for name, value in values.items()}, step)

    def step_now(self) -> int:
        """The number under which loggers get the values of an epoch."""
        loop = self.trainer.fit_loop
        return max(0, loop.logged_steps - loop.stepped) if self.trainer.state == "fit" else loop.logged_steps

    def send(self, values: dict[str, Any], step: int) -> None:
        """Values to the loggers; this is where a device is read. A value named `step` takes the place of `step`."""
        if not values or not self.trainer.loggers:
            self.logged.update(values)
            return
        self.logged.update(values)
        numbers = {name: float(value) for name, value in values.items()}
        step = int(numbers.pop("step", step))
        self.to_loggers({"epoch": self.trainer.current_epoch, **numbers}, step)

    def to_loggers(self, numbers: dict[str, float], step: int) -> None:
        """Rank 0 writes."""
        if self.trainer.is_global_zero:
            for logger in self.trainer.loggers:
                logger.log_metrics(numbers, step)
                if not getattr(logger, "saves_itself", False) and hasattr(logger, "save"):
                    logger.save()

"""What `configure_optimizers` may return, in all of Lightning's forms, as one list of optimizers and one of
schedulers.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from torch.optim.lr_scheduler import ReduceLROnPlateau

from .errors import ConfigurationError, unknown_name


@dataclass
class SchedulerConfig:
    """When a scheduler steps. `reduce_on_plateau`: it wants the value of `monitor`."""

    scheduler: Any
    name: str | None = None
    interval: str = "epoch"
    frequency: int = 1
    monitor: str | None = None
    strict: bool = True
    reduce_on_plateau: bool = False


def read(configured: Any) -> tuple[list[Any], list[SchedulerConfig]]:
    """Raises ConfigurationError for a form that Lightning would not take either."""
    if configured is None:
        return [], []
    if isinstance(configured, dict):
        return _from_dicts([configured])
    if isinstance(configured, (list, tuple)):
        if len(configured) == 2 and isinstance(configured[0], (list, tuple)):
            schedulers = configured[1] if isinstance(configured[1], (list, tuple)) else [configured[1]]
            return list(configured[0]), [_scheduler(item) for item in schedulers]
        if configured and all(isinstance(item, dict) for item in configured):
            return _from_dicts(configured)
        return list(configured), []
    if hasattr(configured, "param_groups") and hasattr(configured, "step"):
        return [configured], []
    raise ConfigurationError(
        f"configure_optimizers returned a {type(configured).__name__}: an optimizer, a list or a dict is needed"
    )


def _from_dicts(items: Any) -> tuple[list[Any], list[SchedulerConfig]]:
    optimizers, schedulers = [], []
    for item in items:
        if "optimizer" not in item:
            raise unknown_name(
                "key of configure_optimizers", next(iter(item), None), ["optimizer", "lr_scheduler", "monitor"]
            )
        optimizers.append(item["optimizer"])
        if item.get("lr_scheduler") is not None:
            schedulers.append(_scheduler(item["lr_scheduler"], item.get("monitor")))
    return optimizers, schedulers


def _scheduler(item: Any, monitor: str | None = None) -> SchedulerConfig:
    if isinstance(item, SchedulerConfig):
        return item
    given = dict(item) if isinstance(item, dict) else {"scheduler": item}
    names = [field.name for field in fields(SchedulerConfig)]
    for name in given:
        if name not in names:
            raise unknown_name("key of a scheduler's dict", name, names)
    config = SchedulerConfig(**{"monitor": monitor, **given})
    if isinstance(config.scheduler, ReduceLROnPlateau):
        config.reduce_on_plateau = True
        if config.monitor is None:
            raise ConfigurationError("ReduceLROnPlateau needs a metric: return it in a dict with 'monitor'")
    return config


def rebind(schedulers: list[SchedulerConfig], made: list[Any], used: list[Any]) -> None:
    """Schedulers change the learning rates of the optimizers in use, where an engine has put others in their place."""
    exchanged = {id(old): new for old, new in zip(made, used, strict=True) if new is not old}
    for config in schedulers:
        new = exchanged.get(id(getattr(config.scheduler, "optimizer", None)))
        if new is not None:
            config.scheduler.optimizer = new
            _tell_of_steps(new)


def _tell_of_steps(optimizer: Any) -> None:
    """torch's schedulers warn when no step has been made before theirs; they look for this mark on `step`."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    step = optimizer.step

    def told(*args: Any, **kwargs: Any) -> Any:
        optimizer._opt_called = True
        return step(*args, **kwargs)

    told._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = told

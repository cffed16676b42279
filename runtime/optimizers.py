"""What `configure_optimizers` may return, in all of Lightning's forms, as one list of optimizers and one of
schedulers.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from typing import Any

import torch
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


def follow_parameters(made: list[Any]) -> None:
    """Bring a state that was loaded before the module was placed to where its parameters are.

    What has no dimension (the count of steps) stays where torch keeps it, on the CPU.
    """
    for optimizer in made:
        for parameter, state in getattr(optimizer, "state", {}).items():
            for name, value in state.items() if isinstance(parameter, torch.Tensor) else ():
                if isinstance(value, torch.Tensor) and value.dim() and value.device != parameter.device:
                    state[name] = value.to(parameter.device)


def read(configured: Any, automatic: bool = True) -> tuple[list[Any], list[SchedulerConfig], list[int]]:
    """(optimizers, schedulers, frequencies), the last empty where all optimizers run on every batch.

    Raises ConfigurationError for a form that Lightning would not take either. `automatic`: the schedulers are stepped
    by the trainer, so those that watch a metric have to name it.
    """
    optimizers, schedulers, frequencies = _parts(configured)
    for optimizer in optimizers:
        if not (hasattr(optimizer, "param_groups") and hasattr(optimizer, "step")):
            raise ConfigurationError(
                f"configure_optimizers gave a {type(optimizer).__name__} as an optimizer; schedulers come in a second "
                "list ([optimizer], [scheduler]) or in a dict with 'optimizer' and 'lr_scheduler'"
            )
    return optimizers, [_scheduler(item, monitor, automatic) for item, monitor in schedulers], frequencies


def without_any(configured: Any) -> str:
    """What is told of a fit without an optimizer. Raises ConfigurationError for anything but None, which is what a
    module gives that wants none.
    """
    if configured is not None:
        raise ConfigurationError(
            f"configure_optimizers returned {configured!r}, which has no optimizer in it: return None to run the steps "
            "without one"
        )
    return "configure_optimizers returned None: no optimizer steps in this fit"


def check_held(module: torch.nn.Module, before: set[torch.nn.Parameter], optimizers: list[Any]) -> None:
    """Raises ConfigurationError where an optimizer steps parameters that `module` does not hold: each rank would step
    them with the gradients of its own share. `before`: those that it held before a strategy divided them.
    """
    held = before.union(module.parameters())
    for optimizer in optimizers:
        strays = sum(p not in held for group in optimizer.param_groups for p in group["params"])
        if strays:
            name = type(module).__name__
            raise ConfigurationError(
                f"{type(optimizer).__name__} steps {strays} parameters that {name} does not hold, so that on several "
                f"processes nothing would average their gradients: assign the module that has them to an attribute of "
                f"{name}, or set `divide_batches = False` in it"
            )


def _parts(configured: Any) -> tuple[list[Any], list[tuple[Any, str | None]], list[int]]:
    if configured is None:
        return [], [], []
    if isinstance(configured, dict):
        return _from_dicts([configured])
    if isinstance(configured, (list, tuple)):
        if len(configured) == 2 and isinstance(configured[0], (list, tuple)):
            schedulers = configured[1] if isinstance(configured[1], (list, tuple)) else [configured[1]]
            return list(configured[0]), [(item, None) for item in schedulers], []
        if configured and all(isinstance(item, dict) for item in configured):
            return _from_dicts(configured)
        return list(configured), [], []
    if hasattr(configured, "param_groups"):
        return [configured], [], []
    raise ConfigurationError(
        f"configure_optimizers returned a {type(configured).__name__}: an optimizer, a list or a dict is needed"
    )


def _from_dicts(items: Any) -> tuple[list[Any], list[tuple[Any, str | None]], list[int]]:
    schedulers = []
    for item in items:
        if "optimizer" not in item:
            raise unknown_name(
                "key of configure_optimizers", next(iter(item), None), ["optimizer", "lr_scheduler", "monitor"]
            )
        if item.get("lr_scheduler") is not None:
            schedulers.append((item["lr_scheduler"], item.get("monitor")))
    frequencies = [item["frequency"] for item in items if item.get("frequency")]
    if frequencies and len(frequencies) < len(items):
        raise ConfigurationError("configure_optimizers: give every optimizer a 'frequency', or none")
    return [item["optimizer"] for item in items], schedulers, frequencies if len(items) > 1 else []


def _scheduler(item: Any, monitor: str | None, automatic: bool) -> SchedulerConfig:
    if isinstance(item, SchedulerConfig):
        return item
    given = dict(item) if isinstance(item, dict) else {"scheduler": item}
    names = [field.name for field in fields(SchedulerConfig)]
    for name in [name for name in given if name not in names]:
        warnings.warn(str(unknown_name("key of a scheduler's dict", name, names)), stacklevel=2)
        del given[name]
    if "scheduler" not in given:
        raise ConfigurationError("a scheduler's dict needs the key 'scheduler'")
    plateau = given.get("reduce_on_plateau", isinstance(given["scheduler"], ReduceLROnPlateau))
    config = SchedulerConfig(**{"monitor": monitor, **given, "reduce_on_plateau": plateau})
    if config.interval not in ("step", "epoch"):
        raise unknown_name("interval of a scheduler", config.interval, ("step", "epoch"))
    if automatic and plateau and config.monitor is None:
        raise ConfigurationError("ReduceLROnPlateau needs a metric: return it in a dict with 'monitor'")
    return config


def rebind(schedulers: list[SchedulerConfig], made: list[Any], used: list[Any]) -> None:
    """Schedulers change the learning rates of the optimizers in use, where an engine has put others in their place."""
    pairs = zip(made, used)  # noqa: B905  an engine may bring the optimizer where the module has none
    exchanged = {id(old): new for old, new in pairs if new is not old}
    for config in schedulers:
        new = exchanged.get(id(getattr(config.scheduler, "optimizer", None)))
        if new is not None:
            config.scheduler.optimizer = new
            _tell_of_steps(new)
    for new in used:
        if not hasattr(getattr(new, "step", None), "__func__"):  # torch's schedulers take methods only: later ones too
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

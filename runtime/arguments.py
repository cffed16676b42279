"""Every argument that Lightning's Trainer has had from 1.2 to 2.6: it works here, or it is refused with what to
use instead.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from .errors import ConfigurationError, unknown_name

# Taken by name; they change nothing here, because of how this runtime works.
NO_EFFECT = ("enable_pl_optimizer", "flush_logs_every_n_steps", "move_metrics_to_cpu", "process_position")
# Refused when they ask for something, with what to use instead.
INSTEAD = {
    "amp_level": "use precision='16-mixed'",
    "auto_lr_find": "try learning rates in a loop of short fits: max_steps=..., and compare trainer.callback_metrics",
    "auto_scale_batch_size": "try batch sizes in a loop of short fits: max_steps=...",
    "automatic_optimization": "set automatic_optimization on the module",
    "early_stop_callback": "use callbacks=[EarlyStopping(...)]",
    "hpus": "HPUs are not supported; use accelerator='gpu' or 'cpu'",
    "ipus": "IPUs are not supported; use accelerator='gpu' or 'cpu'",
    "log_gpu_memory": "start the script with ptrun --monitor",
    "model_registry": "use callbacks=[ModelCheckpoint(dirpath=...)]",
    "stochastic_weight_avg": "use callbacks=[StochasticWeightAveraging(...)]",
    "terminate_on_nan": "use detect_anomaly=True",
    "track_grad_norm": "log the norm in on_before_optimizer_step",
    "truncated_bptt_steps": "cut the batch in training_step and optimize manually",
    "weights_save_path": "use default_root_dir=, or callbacks=[ModelCheckpoint(dirpath=...)]",
}


def in_any_spelling(init: Callable[..., None]) -> Callable[..., None]:
    """For `Trainer.__init__`: arguments of older Lightnings arrive under today's names."""
    known = list(inspect.signature(init).parameters)[1:]

    @wraps(init)
    def translated(self: Any, **given: Any) -> None:
        init(self, **todays(given, known))

    return translated


def todays(given: dict[str, Any], known: list[str]) -> dict[str, Any]:
    """Raises ConfigurationError for what cannot be honoured, and for names that no Lightning had."""
    result = {name: value for name, value in given.items() if name in known}
    for name, value in given.items():
        if name in INSTEAD and value not in (None, False, 0, -1):
            raise ConfigurationError(f"Trainer argument {name!r}: {INSTEAD[name]}")
        if name in OLD and value is not None:
            result.update(OLD[name](value, result))
        elif name not in (*known, *INSTEAD, *NO_EFFECT, *OLD):
            raise unknown_name("Trainer argument", name, [*known, *NO_EFFECT, *INSTEAD, *OLD])
    return result


def _num_processes(value: int, given: dict[str, Any]) -> dict[str, Any]:
    """Processes on the CPU: `accelerator="ddp_cpu", num_processes=2`."""
    if value == 1 or given.get("devices") is not None or given.get("gpus") is not None:
        return {}
    name = given.get("accelerator")
    return {"devices": value, "accelerator": "cpu", **({} if name in (None, "cpu", "auto") else {"strategy": name})}


def _checkpoint_callback(value: Any, given: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"enable_checkpointing": value}
    return {"callbacks": [*as_callbacks(given.get("callbacks")), value]}


def _auto_select_gpus(value: bool, given: dict[str, Any]) -> dict[str, Any]:
    """`gpus=2`: any two that nobody else uses."""
    from .accelerators import unoccupied

    return {"gpus": unoccupied(given["gpus"])} if value and given.get("gpus") else {}


def _tpu_cores(value: Any, given: dict[str, Any]) -> dict[str, Any]:
    """8 or 1: so many cores; [5] or "5,": the fifth one alone."""
    asked = value
    if isinstance(asked, str) and re.fullmatch(r"\s*\d+\s*,?\s*", asked):
        asked = [int(asked.strip(" ,"))] if "," in asked else int(asked)
    one = asked[0] if isinstance(asked, (list, tuple)) and len(asked) == 1 else None
    number = asked if one is None else one
    if type(number) is not int or number < 1:
        raise ConfigurationError(
            f"tpu_cores={value!r}: give a number of cores, such as 8 or 1, or the number of one in a list, from [1] up"
        )
    return {"accelerator": "tpu", "devices": number if one is None else [one - 1]}


# Older names, as functions of their value and of the other arguments to today's arguments.
OLD: dict[str, Callable[[Any, dict[str, Any]], dict[str, Any]]] = {
    "auto_select_gpus": _auto_select_gpus,
    "checkpoint_callback": _checkpoint_callback,
    "distributed_backend": lambda value, given: {} if given.get("strategy") else {"strategy": value},
    "num_processes": _num_processes,
    "progress_bar_refresh_rate": lambda value, given: {"enable_progress_bar": value},
    "reload_dataloaders_every_epoch": lambda value, given: {"reload_dataloaders_every_n_epochs": int(value)},
    "tpu_cores": _tpu_cores,
    "weights_summary": lambda value, given: {"enable_model_summary": bool(value)},
}


# What costs time, with the value at which it costs none.
SLOW = {
    **dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), (None, False)),
    **dict.fromkeys(("fast_dev_run", "detect_anomaly", "profiler"), (None, False)),
    "log_every_n_steps": (None, 0, 50),
    "num_sanity_val_steps": (None, 0),
}


def check_barebones(asked: Any) -> None:
    """Raise ConfigurationError where `barebones=True` stands beside something that costs time."""
    for name, values in SLOW.items():
        if getattr(asked, name) not in values:
            raise ConfigurationError(f"{name}={getattr(asked, name)!r}: barebones=True runs without it")


def epochs(max_epochs: int | None, max_steps: int, max_time: Any) -> int:
    """-1: no end. Lightning trains 1000 epochs when it is told nothing."""
    for name, value in (("max_epochs", max_epochs), ("max_steps", max_steps)):
        if value is not None and value < -1:
            raise ConfigurationError(f"{name}={value}: a number from 0 up is needed, or -1 for no end")
    if max_epochs is None:
        return 1000 if max_steps == -1 and max_time is None else -1
    return max_epochs


def first_epochs(min_epochs: int | None, min_steps: int | None) -> int:
    """How many epochs there are at least; steps that there must be at least make it one."""
    return min_epochs if min_epochs is not None else int(min_steps is not None)


def interval(value: Any) -> tuple[float, float | None]:
    """`val_check_interval` as (batches or a fraction of them, seconds)."""
    if isinstance(value, (str, timedelta, dict)):
        return 1.0, checked_time(value, "val_check_interval")
    if value is None:
        return 1.0, None
    if isinstance(value, bool) or value <= 0 or (isinstance(value, float) and value > 1.0):
        raise ConfigurationError(f"val_check_interval={value!r}: batches, a fraction up to 1.0, or a time is needed")
    return value, None


def checked_count(name: str, value: Any, least: int) -> Any:
    """A whole number from `least` up, or None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise ConfigurationError(f"{name}={value!r}: a whole number from {least} up is needed")
    return value


def checked_clipping(value: Any) -> float | None:
    """A number, or None; below 0 nothing is clipped, as in Lightning."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise ConfigurationError(f"gradient_clip_val={value!r}: a number is needed")
    return value if value is None or value >= 0 else None


def checked_limit(name: str, limit: float | None) -> float | None:
    """None and 1.0: all batches; an int: so many; a fraction: so much of them."""
    if limit is None or (isinstance(limit, float) and limit == 1.0):
        return None
    if (
        isinstance(limit, bool)
        or not isinstance(limit, (int, float))
        or limit < 0
        or (isinstance(limit, float) and limit > 1)
    ):
        raise ConfigurationError(f"{name}={limit!r}: give a number of batches, or a fraction from 0.0 to 1.0")
    return limit


def checked_accumulation(value: Any) -> dict[int, int]:
    """{epoch: how many batches a step from then on}."""
    table = value if isinstance(value, dict) else {0: 1 if value is None else value}
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in table.values()):
        raise ConfigurationError(f"accumulate_grad_batches={value!r}: whole numbers from 1 up are needed")
    return {0: 1, **table}


def checked_algorithm(name: str | None) -> str:
    if name not in (None, "norm", "value"):
        raise ConfigurationError(f"gradient_clip_algorithm={name!r}: 'norm' or 'value'")
    return name or "norm"


def with_checkpointing(callbacks: Any, enabled: bool | None) -> list[Any]:
    """The callbacks; `enabled` adds a ModelCheckpoint where there is none. ConfigurationError for what is none."""
    from .callbacks import Callback, ModelCheckpoint

    found = as_callbacks(callbacks)
    for callback in found:
        if not isinstance(callback, Callback):
            shown = callback.__name__ if isinstance(callback, type) else repr(callback)
            raise ConfigurationError(f"callbacks: {shown} is no Callback; give objects of its subclasses")
    if enabled and not any(isinstance(callback, ModelCheckpoint) for callback in found):
        found.append(ModelCheckpoint())
    return found


def as_callbacks(callbacks: Any) -> list[Any]:
    return list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []


# Of validate, test and predict: today's names, and what Lightning 1 called the loaders.
OF_EVALUATION = ("datamodule", "weights_only", "verbose")
OLD_LOADERS = {"validate": "val_dataloaders", "test": "test_dataloaders", "predict": "dataloaders"}


def of_evaluation(stage: str, loaders: Any, more: dict[str, Any]) -> tuple[Any, Any, bool]:
    """(loaders, datamodule, weights_only). Raises ConfigurationError for names that there are not."""
    known = (*OF_EVALUATION, OLD_LOADERS[stage])
    for name in more:
        if name not in known:
            raise unknown_name(f"argument of Trainer.{stage}", name, ("model", "dataloaders", "ckpt_path", *known))
    given = more.get(OLD_LOADERS[stage])
    weights_only = more.get("weights_only")
    return given if loaders is None else loaders, more.get("datamodule"), weights_only is not False


def checked_time(value: Any, name: str = "max_time") -> float | None:
    """Seconds from "DD:HH:MM:SS", a timedelta, or its arguments as a dict."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return timedelta(**value).total_seconds()
    match = re.fullmatch(r"(\d+):(\d+):(\d+):(\d+)", str(value))
    if match is None:
        raise ConfigurationError(f"{name}={value!r}: 'DD:HH:MM:SS', a timedelta, or a dict for one is needed")
    days, hours, minutes, seconds = map(int, match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()

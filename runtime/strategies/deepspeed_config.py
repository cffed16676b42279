"""DeepSpeed's config: a dict or a JSON file of the user's, and what a run makes of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from ..handle import Runtime

SECTIONS = ("zero_optimization", "optimizer", "scheduler", "fp16", "bf16")


def read_config(given: Any) -> dict[str, Any]:
    """A dict of its own, from a dict or a JSON file. Raises ConfigurationError that names the file."""
    if isinstance(given, dict):
        return checked(json.loads(json.dumps(given)), "DeepSpeed's config")
    if not isinstance(given, (str, os.PathLike)):
        raise ConfigurationError(f"DeepSpeed's config: a dict or the path of a JSON file is needed, not {given!r}")
    path = Path(given)
    name = f"DeepSpeed's config {str(path)!r}"
    if not path.is_file():
        raise ConfigurationError(f"{name} is a folder" if path.is_dir() else f"{name} was not found")
    try:
        config = json.loads(path.read_text())
    except ValueError as error:
        raise ConfigurationError(f"{name} is not JSON: {error}") from None
    return checked(config, name)


def checked(config: Any, name: str) -> dict[str, Any]:
    """`config`, where it is what DeepSpeed reads; else ConfigurationError that begins with `name`."""
    if not isinstance(config, dict):
        raise ConfigurationError(f"{name}: an object is needed, as {{...}}")
    for section in SECTIONS:
        if not isinstance(config.get(section, {}), dict):
            raise ConfigurationError(f"{name}: {section!r} is an object, as {{...}}, not {config[section]!r}")
    check_stage(config.get("zero_optimization", {}).get("stage", 0), f"{name}: ")
    return config


def check_stage(stage: Any, where: str = "") -> None:
    if stage not in (0, 1, 2, 3):
        told = f"stage={stage!r}: ZeRO has stages 1, 2 and 3 (0: everything on every process)"
        raise ConfigurationError(where + told)


def completed(given: dict[str, Any], manual: bool, runtime: Runtime) -> dict[str, Any]:
    """`given` with what the run decides; `manual`: the steps are the module's. ConfigurationError for what it must not
    say.
    """
    config = json.loads(json.dumps(given))
    if manual:
        config["managed_gradient_accumulation"] = False  # a step is made when the user makes it
    if int(config.get("gradient_accumulation_steps", 1)) != 1:
        raise ConfigurationError("gradient_accumulation_steps in DeepSpeed's config: give accumulate_grad_batches=")
    config.pop("train_batch_size", None)
    config["gradient_accumulation_steps"] = 1
    config.setdefault("train_micro_batch_size_per_gpu", 1)  # the loader decides; DeepSpeed only prints it
    config.setdefault("steps_per_print", 2**31)
    config.setdefault("zero_force_ds_cpu_optimizer", False)
    config.setdefault("zero_allow_untested_optimizer", True)
    config.setdefault("gradient_clipping", 0.0)  # its own default cuts every gradient to a norm of 1
    precision = runtime.precision
    if precision.dtype is torch.bfloat16:
        config.setdefault("bf16", {"enabled": True})
    elif precision.autocast_dtype is torch.bfloat16:
        config.setdefault("torch_autocast", {"enabled": True, "dtype": "bfloat16"})
    elif precision.name.startswith("16"):
        config.setdefault("fp16", {"enabled": True})
        precision.scaler = None  # DeepSpeed scales the loss
    optimizer = config.get("optimizer", {})
    if runtime.on_cpu and str(optimizer.get("type", "")).lower() in ("adam", "adamw"):
        params = optimizer.setdefault("params", {})
        params.setdefault("torch_adam", True)  # FusedAdam is compiled for minutes
        params.setdefault("weight_decay", 0.0)  # as FusedAdam; torch's AdamW has another default
    return config

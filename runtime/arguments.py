"""Every argument that Lightning's Trainer has had from 1.2 to 2.6: it works here, or it is refused with what to
use instead.
"""

from __future__ import annotations

import re
import warnings
from datetime import timedelta
from typing import Any

from .errors import ConfigurationError, unknown_name

# Taken by name, and without effect here because of how this runtime works; the reason is told once when it is used.
NO_EFFECT = {
    "auto_lr_find": None,
    "auto_scale_batch_size": None,
    "barebones": None,
    "benchmark": None,
    "enable_model_summary": None,
    "flush_logs_every_n_steps": None,
    "inference_mode": None,
    "model_registry": None,
    "move_metrics_to_cpu": None,
    "multiple_trainloader_mode": None,
    "prepare_data_per_node": None,
    "process_position": None,
    "progress_bar_refresh_rate": None,
    "reload_dataloaders_every_epoch": None,
    "terminate_on_nan": None,
    "truncated_bptt_steps": None,
    "weights_summary": None,
    "enable_autolog_hparams": None,
}
INSTEAD = {
    "ipus": "IPUs are not supported; use accelerator='gpu' or 'cpu'",
    "num_processes": "use devices= with accelerator='cpu'",
    "distributed_backend": "use strategy=",
    "tpu_cores": "use accelerator='tpu', devices=",
    "checkpoint_callback": "use enable_checkpointing= or callbacks=[ModelCheckpoint(...)]",
    "resume_from_checkpoint": "use trainer.fit(..., ckpt_path=...)",
    "early_stop_callback": "use callbacks=[EarlyStopping(...)]",
    "track_grad_norm": "log the norm in on_before_optimizer_step",
    "amp_level": "use precision='16-mixed'",
    "weights_save_path": "use default_root_dir=",
    "stochastic_weight_avg": "use torch.optim.swa_utils in a callback",
    "overfit_batches": "use limit_train_batches= and limit_val_batches=",
    "profiler": "use torch.profiler in a callback",
    "auto_select_gpus": "name the devices: devices=[...]",
}


def check(extra: dict[str, Any], known: list[str]) -> None:
    """`extra`: arguments that the Trainer's signature does not have. Raises ConfigurationError for those it cannot
    honour.
    """
    for name, value in extra.items():
        if name in INSTEAD:
            if value not in (None, False, 0, 0.0):
                raise ConfigurationError(f"Trainer argument {name!r}: {INSTEAD[name]}")
        elif name in NO_EFFECT:
            if value not in (None, False):
                warnings.warn(f"Trainer argument {name}={value!r} has no effect here", stacklevel=4)
        else:
            raise unknown_name("Trainer argument", name, [*known, *NO_EFFECT, *INSTEAD])


def epochs(max_epochs: int | None, max_steps: int, max_time: Any) -> int:
    """-1: no end. Lightning trains 1000 epochs when it is told nothing."""
    if max_epochs is None:
        return 1000 if max_steps == -1 and max_time is None else -1
    return max_epochs


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
    table = value if isinstance(value, dict) else {0: value}
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in table.values()):
        raise ConfigurationError(f"accumulate_grad_batches={value!r}: whole numbers from 1 up are needed")
    return {0: 1, **table}


def checked_algorithm(name: str | None) -> str:
    if name not in (None, "norm", "value"):
        raise ConfigurationError(f"gradient_clip_algorithm={name!r}: 'norm' or 'value'")
    return name or "norm"


def as_callbacks(callbacks: Any) -> list[Any]:
    return list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []


def checked_time(value: Any) -> float | None:
    """Seconds from "DD:HH:MM:SS", a timedelta, or its arguments as a dict."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return timedelta(**value).total_seconds()
    match = re.fullmatch(r"(\d+):(\d+):(\d+):(\d+)", str(value))
    if match is None:
        raise ConfigurationError(f"max_time={value!r}: 'DD:HH:MM:SS', a timedelta, or a dict for one is needed")
    days, hours, minutes, seconds = map(int, match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()

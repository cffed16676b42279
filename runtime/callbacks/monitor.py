"""Watching a metric: its value, and which of two is better."""

from __future__ import annotations

import math
from typing import Any

from ..errors import ConfigurationError, unknown_name

BETTER = {"min": float.__lt__, "max": float.__gt__}
WORST = {"min": math.inf, "max": -math.inf}


def checked_mode(mode: str) -> str:
    if mode not in BETTER:
        raise ConfigurationError(f"mode={mode!r}: 'min' or 'max'")
    return mode


def current(trainer: Any, name: str, strict: bool = True) -> float | None:
    """The metric's value now; where it was not logged, unknown_name if `strict`, else None."""
    value = trainer.callback_metrics.get(name)
    if value is None and strict:
        raise unknown_name("metric to monitor", name, trainer.callback_metrics)
    return None if value is None else float(value)

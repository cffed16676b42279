"""Strategies: one file an engine, a registry of names. `register` adds your own."""

from __future__ import annotations

import importlib
from typing import Any

from .base import Strategy
from .needs import FEATURES, Package
from .registry import CLASSES, choose_strategy, known, register

__all__ = ["FEATURES", "Package", "Strategy", "choose_strategy", "known", "register"]


def __getattr__(name: str) -> Any:
    """The classes of the engines, by the names that Lightning has given them; imported when they are asked for."""
    if name not in CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(CLASSES[name], __name__), name)

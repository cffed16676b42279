"""Strategies: one file an engine, a registry of names. `register` adds your own."""

from .base import Strategy
from .registry import choose_strategy, known, register

__all__ = ["Strategy", "choose_strategy", "known", "register"]

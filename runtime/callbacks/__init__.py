"""Callbacks, by Lightning's names."""

from .base import Callback

__all__ = ["Callback"]

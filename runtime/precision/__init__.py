"""Numeric precision: which dtype the forward pass runs in, and how the loss is scaled."""

from .plugin import Precision, choose_precision

__all__ = ["Precision", "choose_precision"]

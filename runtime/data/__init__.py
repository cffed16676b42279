"""Dividing batches among ranks: the batches are those that one process would draw; what is divided is each batch."""

from .loaders import divide_loader
from .move import batch_size_of, length_of, move_to, to_cpu

__all__ = ["batch_size_of", "divide_loader", "length_of", "move_to", "to_cpu"]

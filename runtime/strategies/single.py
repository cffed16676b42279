"""One process, one device: the module itself, and `Tensor.backward`."""

from .base import Strategy
from .registry import register


@register("single")
class Single(Strategy):
    """Everything as in a loop written by hand."""

"""What a strategy is: how the training step runs and how gradients become those of the global batch.

To add an engine, subclass `Strategy` in a file of its own, decorate it with `@register("name")`, and give a meaning
to the methods that differ; they are listed in the order in which a run calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from ..handle import Runtime
    from ..module import Module


class Strategy:
    """One process, nothing to do; the base of the others."""

    name = "single"
    needs_processes = False  # True: one process a device, started by a launcher

    def __init__(self, runtime: Runtime):
        self.runtime = runtime

    def wrap(self, module: Module) -> Callable[[Any, int], Any]:
        """For automatic optimization: what is called at every batch, with training_step's arguments."""
        return module.training_step

    def follow(self, module: torch.nn.Module) -> None:
        """For kept loops and manual optimization: `module` stays the user's own object, used in any way."""

    def backward(self, loss: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        """For kept loops and manual optimization: when this returns, gradients are those of the global batch."""
        loss.backward(*args, **kwargs)

    def no_sync(self) -> AbstractContextManager:
        """Inside, gradients stay this rank's own; the first backward after it brings them together."""
        return nullcontext()

    def teardown(self) -> None:
        """The run is over: leave the user's module as a plain one."""

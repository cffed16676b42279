"""What a strategy is: how the training step runs and how gradients become those of the global batch.

To add an engine, subclass `Strategy` in a file of its own, decorate it with `@register("name")`, and give a meaning
to the methods that differ; they are listed in the order in which a run calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from ..hooks import overridden

if TYPE_CHECKING:
    from ..handle import Runtime
    from ..module import Module


def with_step_end(module: Module, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
    """`step`, then the module's `name_end` with what it gave, where the module has one."""
    from ..module import Module as Base

    if not overridden(module, f"{name}_end", Base):
        return step
    end = getattr(module, f"{name}_end")
    return lambda *args: end(step(*args))


class Strategy:
    """One process, nothing to do; the base of the others."""

    name = "single"
    needs_processes = False  # True: one process a device, started by a launcher

    def __init__(self, runtime: Runtime):
        self.runtime = runtime

    def step(self, module: Module, name: str) -> Callable[..., Any]:
        """The module's `name` ("training_step", "validation_step", "test_step") on this process's batch, and its
        `name_end` after it.

        An engine with several devices a process divides the batch here, and gathers the outputs of the devices before
        `name_end` sees them.
        """
        return with_step_end(module, name, getattr(module, name))

    def wrap(self, module: Module) -> Callable[..., Any]:
        """For automatic optimization: what is called at every batch, with training_step's arguments."""
        return self.step(module, "training_step")

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

"""A batch on its way to the device, through the hooks that a module or datamodule has for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..hooks import overridden
from .hooks import DataHooks

if TYPE_CHECKING:
    from ..handle import Runtime
    from ..module import Module

NAMES = ("on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer")


def placer(runtime: Runtime, module: Module, datamodule: Any, index: int = 0) -> Callable[[Any], Any] | None:
    """What brings a batch of loader `index` to the device, or None where nothing has to be done."""
    own = {name: module for name in NAMES if overridden(module, name, DataHooks)}
    if datamodule is not None:
        own |= {name: datamodule for name in NAMES if overridden(datamodule, name, DataHooks)}
    if not own:
        return runtime.place_batch if runtime.places_batches else None

    def place(batch: Any) -> Any:
        batch = runtime.precision.convert_batch(batch)
        before, move, after = (getattr(own.get(name, module), name) for name in NAMES)
        batch = before(batch, index)
        batch = move(batch, runtime.device, index)
        return after(batch, index)

    return place

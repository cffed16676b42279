"""Batches of loops that no Trainer runs, on the device where the Trainer has placed the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .data.loaders import PlacedLoader
from .data.move import move_to

if TYPE_CHECKING:
    from .handle import Runtime

latest: Runtime | None = None  # of this process: the one that was made last


def on_device(loader: Any) -> Any:
    """`loader` with its batches moved to this process's device; on the CPU the same object.

    Above the Trainer each batch goes where the models are when it is drawn: `it = iter(on_device(loader))`.
    """
    if latest is None:
        return LaterLoader(loader)
    return loader if latest.on_cpu else PlacedLoader(loader, latest)


class LaterLoader(PlacedLoader):
    """A loader that is asked for before any model is placed."""

    def __init__(self, loader: Any):
        self.loader = loader

    def __iter__(self) -> Iterator:
        return (batch if latest is None else move_to(batch, latest.device) for batch in self.loader)

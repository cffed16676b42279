"""Batches of loops that no Trainer runs, on the device where the Trainer has placed the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .data.loaders import PlacedLoader

if TYPE_CHECKING:
    from .handle import Runtime

latest: Runtime | None = None  # of this process: the one that was made last


def on_device(loader: Any) -> Any:
    """`loader` with its batches moved to this process's device; on the CPU, or without a Trainer, the same object."""
    if latest is None or latest.on_cpu:
        return loader
    return PlacedLoader(loader, latest)

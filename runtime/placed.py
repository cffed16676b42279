"""Batches of loops that no Trainer runs, on the device where the Trainer has placed the model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch

from .data.loaders import PlacedLoader
from .data.move import move_to

if TYPE_CHECKING:
    from .handle import Runtime

latest: Runtime | None = None  # of this process: the one that was made last


def on_device(loader: Any, network: torch.nn.Module | None = None) -> Any:
    """`loader` with its batches moved to this process's device; on the CPU the same object.

    Above the Trainer each batch goes where the models are when it is drawn: `it = iter(on_device(loader))`. Given a
    `network`, which may be one that the Trainer does not know, they go where that is.
    """
    if isinstance(network, torch.nn.Module):
        return BesideLoader(loader, network)
    return loader if latest is not None and latest.on_cpu else LaterLoader(loader)


class LaterLoader(PlacedLoader):
    """A loader whose batches go where the models are by then: placed or not yet, or back on the CPU."""

    def __init__(self, loader: Any):
        self.loader = loader

    def __iter__(self) -> Iterator:
        return (batch if _on_cpu() else move_to(batch, latest.device) for batch in self.loader)  # type: ignore[union-attr]


class BesideLoader(LaterLoader):
    """A loader whose batches go where a network is; where that has no weights, where the models are."""

    def __init__(self, loader: Any, network: torch.nn.Module):
        self.loader, self.network = loader, network

    def __iter__(self) -> Iterator:
        weight = next(chain(self.network.parameters(), self.network.buffers()), None)
        if weight is None:
            return super().__iter__()
        return (move_to(batch, weight.device) for batch in self.loader)


def _on_cpu() -> bool:
    """Whether the models are there: no Trainer has placed them, or it has brought them back."""
    return latest is None or latest.models_on_cpu

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
    if latest is None:
        return LaterLoader(loader)
    return loader if latest.on_cpu else PlacedLoader(loader, latest)


class LaterLoader(PlacedLoader):
    """A loader that is asked for before any model is placed."""

    def __init__(self, loader: Any):
        self.loader = loader

    def __iter__(self) -> Iterator:
        return (batch if latest is None else move_to(batch, latest.device) for batch in self.loader)


class BesideLoader(PlacedLoader):
    """A loader whose batches go where a network is; where that has no weights, where the models are."""

    def __init__(self, loader: Any, network: torch.nn.Module):
        self.loader, self.network = loader, network

    def __iter__(self) -> Iterator:
        weight = next(chain(self.network.parameters(), self.network.buffers()), None)
        where = latest if weight is None else weight
        return iter(self.loader) if where is None else (move_to(batch, where.device) for batch in self.loader)

"""What an algorithm may do: to gradients when backward has made them, and around the optimizers' steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist


class Algorithm:
    """The base leaves gradients and weights to each rank. All ranks call everything in the same order."""

    dense = False  # True: sparse gradients cannot be sent
    local_weights = False  # True: ranks hold different weights between two steps

    def check(self, world: int) -> None:
        """Raise ConfigurationError where so many processes cannot do it."""

    def start(self, module: torch.nn.Module, optimizers: list[Any]) -> list[Any]:
        """Ranks have met and hold the same weights. Returns the optimizers, replaced where need be."""
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        return optimizers

    def reduce(self, flat: torch.Tensor) -> None:
        """Gradients of shape (n,), in place; by default those of this rank stay."""

    def finish(self) -> None:
        """The last step is behind, on all ranks."""

    def stop(self) -> None:
        """The run is over, perhaps by an error of this rank only: no messages here."""

    def told(self) -> str | None:
        """What there is to say at the end, on rank 0."""
        return None


def parameters_of(optimizer: Any) -> list[torch.nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def flattened(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """All numbers of `tensors` one after another, as float32, shape (n,)."""
    return torch.cat([tensor.detach().reshape(-1).float() for tensor in tensors])


def unflatten(flat: torch.Tensor, tensors: list[torch.Tensor]) -> None:
    """The opposite: overwrite `tensors` with what `flat` has for them."""
    with torch.no_grad():
        for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))


def mean_over_ranks(flat: torch.Tensor, group: Any = None) -> torch.Tensor:
    """The mean, in place."""
    dist.all_reduce(flat, group=group)
    flat /= dist.get_world_size(group)
    return flat


def swap(mine: list[torch.Tensor], peer: int) -> list[torch.Tensor]:
    """Give `peer` these tensors, and get its own of the same shapes."""
    theirs = [torch.empty_like(tensor) for tensor in mine]
    requests = []
    for tag, (out, into) in enumerate(zip(mine, theirs, strict=True)):
        requests += [dist.isend(out, peer, tag=tag), dist.irecv(into, peer, tag=tag)]
    for request in requests:
        if request is not None:
            request.wait()
    return theirs

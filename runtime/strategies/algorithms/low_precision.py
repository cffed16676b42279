"""Weights averaged with the two neighbours on a ring, of which only changes are sent, in eight bits.

Tang et al., Communication Compression for Decentralized Training, NeurIPS 2018 (their DCD-PSGD).
"""

from __future__ import annotations

from typing import Any

import torch

from ...errors import ConfigurationError
from .base import Algorithm, flattened, parameters_of, swap, unflatten
from .bytes import Packed, pack, unpack


class LowPrecisionDecentralized(Algorithm):
    """Every rank knows what its neighbours know of it: after a step, one third of itself and of each neighbour, plus
    the step, less what is known, is rounded to eight bits and sent, and all add the rounded change.

    Tang et al., Communication Compression for Decentralized Training, NeurIPS 2018.
    """

    local_weights = True

    def __init__(self, hierarchical: bool = False, communication_interval: int = 1):
        if communication_interval < 1:
            raise ConfigurationError(f"communication_interval={communication_interval}: at least 1 is needed")
        self.interval = communication_interval

    def start(self, module: torch.nn.Module, optimizers: list[Any]) -> list[Any]:
        super().start(module, optimizers)
        self.left, self.right = (self.rank - 1) % self.world, (self.rank + 1) % self.world
        self.steps = dict.fromkeys(map(id, optimizers), 0)
        self.known: dict[int, list[torch.Tensor]] = {}  # of each optimizer: own, left's, right's weights
        self.handles = [optimizer.register_step_pre_hook(self.before_step) for optimizer in optimizers]
        self.handles += [optimizer.register_step_post_hook(self.after_step) for optimizer in optimizers]
        return optimizers

    def before_step(self, optimizer: Any, *_: Any) -> None:
        """The first step starts from the same weights on all ranks, which a checkpoint may have brought since; so do
        parameters that the optimizer gets later.
        """
        known = self.known.get(id(optimizer), [torch.empty(0)] * 3)
        weights = flattened(parameters_of(optimizer))
        if len(known[0]) < len(weights):
            new = weights[len(known[0]) :]
            self.known[id(optimizer)] = [torch.cat([copy.to(new.device), new]) for copy in known]

    def after_step(self, optimizer: Any, *_: Any) -> None:
        self.steps[id(optimizer)] += 1
        if self.steps[id(optimizer)] % self.interval:
            return
        parameters: list[torch.Tensor] = list(parameters_of(optimizer))
        own, left, right = self.known[id(optimizer)]
        change = flattened(parameters) + (left + right) / 3 - own * (5 / 3)
        mine = pack(change.view(1, -1))
        for peer, copy in self.exchange(mine):
            (left if peer == "left" else right).add_(copy)
        own.add_(unpack(mine).view(-1))
        unflatten(own, parameters)

    def exchange(self, mine: Packed) -> list[tuple[str, torch.Tensor]]:
        """The changes of both neighbours; with two ranks they are one."""
        if self.left == self.right:
            theirs = unpack(Packed(*swap(list(mine), self.left))).view(-1)
            return [("left", theirs), ("right", theirs)]
        order = [("left", self.left), ("right", self.right)]
        if self.rank % 2:
            order.reverse()
        return [(side, unpack(Packed(*swap(list(mine), peer))).view(-1)) for side, peer in order]

    def stop(self) -> None:
        for handle in getattr(self, "handles", ()):
            handle.remove()

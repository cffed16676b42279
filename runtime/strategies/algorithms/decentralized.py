"""Weights averaged with peers instead of gradients.

Lian et al., Can Decentralized Algorithms Outperform Centralized Algorithms? A Case Study for Decentralized Parallel
Stochastic Gradient Descent, NeurIPS 2017.
"""

from __future__ import annotations

from typing import Any

import torch

from ...errors import ConfigurationError, unknown_name
from .base import Algorithm, flattened, mean_over_ranks, parameters_of, swap, unflatten

PEERS = ("all", "shift_one")


class Decentralized(Algorithm):
    """Every `communication_interval`-th step starts from the mean of one's own weights and the peers': of all ranks
    ("all"), or of one that changes from step to step ("shift_one", an even number of ranks). Gradients stay where they
    were computed.

    Lian et al., NeurIPS 2017.
    """

    local_weights = True

    def __init__(self, hierarchical: bool = False, peer_selection_mode: str = "all", communication_interval: int = 1):
        if peer_selection_mode not in PEERS:
            raise unknown_name("peer_selection_mode", peer_selection_mode, PEERS)
        if communication_interval < 1:
            raise ConfigurationError(f"communication_interval={communication_interval}: at least 1 is needed")
        self.mode, self.interval = peer_selection_mode, communication_interval

    def check(self, world: int) -> None:
        if self.mode == "shift_one" and world % 2:
            raise ConfigurationError(
                f"algorithm 'decentralized' with peer_selection_mode='shift_one' pairs ranks: {world} cannot be paired"
            )

    def start(self, module: torch.nn.Module, optimizers: list[Any]) -> list[Any]:
        super().start(module, optimizers)
        self.steps = dict.fromkeys(map(id, optimizers), 0)
        self.handles = [optimizer.register_step_pre_hook(self.before_step) for optimizer in optimizers]
        return optimizers

    def before_step(self, optimizer: Any, *_: Any) -> None:
        step = self.steps[id(optimizer)]
        self.steps[id(optimizer)] += 1
        if step % self.interval:
            return
        parameters: list[torch.Tensor] = list(parameters_of(optimizer))
        mine = flattened(parameters)
        if self.mode == "all":
            mean_over_ranks(mine)
        else:
            (theirs,) = swap([mine], self.peer(step // self.interval))
            mine = (mine + theirs) / 2
        unflatten(mine, parameters)

    def peer(self, turn: int) -> int:
        """Ranks of the lower half meet those of the upper half, each turn another one."""
        half = self.world // 2
        if self.rank < half:
            return half + (self.rank + turn) % half
        return (self.rank - half - turn) % half

    def stop(self) -> None:
        for handle in getattr(self, "handles", ()):
            handle.remove()

"""Weights averaged behind the training's back: no step waits for another rank.

Lian et al., Asynchronous Decentralized Parallel Stochastic Gradient Descent, ICML 2018.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import torch
import torch.distributed as dist

from ...errors import ConfigurationError
from .base import Algorithm, flattened, mean_over_ranks, parameters_of, unflatten


class Asynchronous(Algorithm):
    """`warmup_steps` steps with exact gradients; then, at most every `sync_interval_ms`, a thread averages a copy of
    the weights over all ranks, while steps go on, and what the mean differs by is added before a later step.

    Lian et al., Asynchronous Decentralized Parallel Stochastic Gradient Descent, ICML 2018.
    """

    local_weights = True

    def __init__(self, warmup_steps: int = 0, sync_interval_ms: int = 500, peer_selection_mode: str = "all"):
        if warmup_steps < 0 or sync_interval_ms < 0 or peer_selection_mode != "all":
            raise ConfigurationError("algorithm 'async': steps and milliseconds from 0 up, peer_selection_mode 'all'")
        self.warmup_steps, self.seconds = warmup_steps, sync_interval_ms / 1000
        self.rounds = 0  # averages that have been added

    def start(self, module: torch.nn.Module, optimizers: list[Any]) -> list[Any]:
        super().start(module, optimizers)
        self.parameters: list[torch.Tensor] = [p for optimizer in optimizers for p in parameters_of(optimizer)]
        self.optimizers = optimizers
        self.groups = [len(optimizer.param_groups) for optimizer in optimizers]
        self.leader = optimizers[0] if optimizers else None
        self.steps = 0
        self.thread: Averaging | None = None
        self.group = dist.new_group(backend="gloo")
        self.handles = [optimizer.register_step_pre_hook(self.before_step) for optimizer in optimizers[:1]]
        return optimizers

    def reduce(self, flat: torch.Tensor) -> None:
        if self.steps < self.warmup_steps:
            mean_over_ranks(flat)

    def before_step(self, *_: Any) -> None:
        self.steps += 1
        if self.groups != [len(optimizer.param_groups) for optimizer in self.optimizers]:
            raise ConfigurationError(
                "algorithm 'async' cannot do add_param_group in training: ranks would average different numbers of "
                "weights; use 'decentralized'"
            )
        if self.steps <= self.warmup_steps:
            return
        if self.thread is None:
            self.thread = Averaging(self.group)
            self.thread.start()
        self._add(self.thread.taken())
        if self.thread.ready(self.seconds):
            self.thread.hand_in(flattened(self.parameters).cpu())

    def _add(self, difference: torch.Tensor | None) -> None:
        if difference is None:
            return
        self.rounds += 1
        mine = flattened(self.parameters)
        unflatten(mine + difference.to(mine.device), self.parameters)

    def finish(self) -> None:
        """The thread's rounds need all ranks: the first that has no more steps ends them for all."""
        if self.warmup_steps >= self.steps or self.thread is None:
            return
        self.thread.hand_in(None)
        self.thread.join()
        self._add(self.thread.taken())

    def stop(self) -> None:
        for handle in getattr(self, "handles", ()):
            handle.remove()

    def told(self) -> str | None:
        return f"async: {self.rounds} averages of the weights in {self.steps} steps"


class Averaging(threading.Thread):
    """One round after another: weights in, the difference to their mean out. Rounds of all ranks belong together."""

    def __init__(self, group: Any):
        super().__init__(daemon=True, name="ptmigrate-averaging")
        self.group = group
        self.work = threading.Condition()
        self.weights: torch.Tensor | None = None
        self.difference: torch.Tensor | None = None
        self.busy = self.ending = False
        self.last = time.monotonic()

    def ready(self, seconds: float) -> bool:
        """Is no round under way, and the last one long enough ago?"""
        return not self.busy and not self.ending and time.monotonic() - self.last >= seconds

    def taken(self) -> torch.Tensor | None:
        """What the last round came to, once."""
        with self.work:
            difference, self.difference = self.difference, None
            return difference

    def hand_in(self, weights: torch.Tensor | None) -> None:
        """Weights for a round; None: this rank has no more."""
        with self.work:
            if weights is None:
                self.ending = True
            else:
                self.weights, self.busy = weights, True
            self.work.notify()

    def run(self) -> None:
        try:
            while self.round():
                pass
        except RuntimeError:
            self.ending = True  # a rank is gone: whoever speaks with it next will say so
        self.busy = False

    def round(self) -> bool:
        with self.work:
            self.work.wait_for(lambda: self.busy or self.ending)
            weights = self.weights if self.busy else None
        goes_on = torch.tensor([int(weights is not None)])
        dist.all_reduce(goes_on, dist.ReduceOp.MIN, group=self.group)
        if not goes_on or weights is None:
            self.ending = True
            return False
        mean = mean_over_ranks(weights.clone(), self.group)
        with self.work:
            self.difference, self.busy, self.last = mean - weights, False, time.monotonic()
        return True

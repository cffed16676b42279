"""Ranks whose steps use different parameters, or use them in another order, under DeepSpeed's ZeRO.

Stages 1 and 2 write gradients into a buffer in the order in which a backward brings them, and add up the buffers of all
ranks: where that order differs, gradients of different parameters would be added. Stage 3 sends parameters to whoever
is about to use them, and has every rank ask for the same ones.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from ..strategies.together import Together


class InOrder:
    """One order for all ranks: a gradient waits for its turn, and one that has not come when backward is over is zero.

    The order is the one in which the first backward brings them on rank 0, so that hardly any waits.
    """

    def __init__(self, zero: Any):
        """`zero`: DeepSpeed's optimizer of stage 1 or 2, before the first backward."""
        self.zero = zero
        self.order = [(p, i) for i, group in enumerate(zero.bit16_groups) for p in group if p.requires_grad][::-1]
        self.came: dict[int, None] = {}  # ids of the parameters whose gradients are there, in their order
        self.turn, self.learned = 0, False
        self._process, self._end = zero.process_gradients, zero.backward_epilogue
        self._reduce, self._reduce_rest = zero.reduce_gradients, zero.overlapping_partition_gradients_reduce_epilogue
        zero.process_gradients, zero.backward_epilogue = self.come, self.end
        zero.reduce_gradients, zero.overlapping_partition_gradients_reduce_epilogue = self.reduce, self.reduce_rest

    def come(self, parameter: torch.nn.Parameter, group: int) -> None:
        """A gradient is there; called by DeepSpeed's hook."""
        self.came[id(parameter)] = None
        while self.turn < len(self.order) and id(self.order[self.turn][0]) in self.came:
            self._take_turn()

    def _take_turn(self) -> None:
        self._process(*self.order[self.turn])
        self.turn += 1

    def reduce(self, *args: Any, **kwargs: Any) -> None:
        self._complete()
        self._reduce(*args, **kwargs)

    def reduce_rest(self) -> None:
        self._complete()
        self._reduce_rest()

    def _complete(self) -> None:
        """Backward is over, and all ranks are here."""
        while self.turn < len(self.order):
            parameter, _ = self.order[self.turn]
            if id(parameter) not in self.came and self.zero.get_gradient_for_reduction(parameter) is None:
                parameter.grad = torch.zeros_like(parameter)
            self._take_turn()
        if not self.learned:
            self._learn()

    def _learn(self) -> None:
        """What comes first in a backward goes first; rank 0's order for all."""
        self.learned = True
        place = {key: number for number, key in enumerate(self.came)}
        numbers = sorted(range(len(self.order)), key=lambda n: place.get(id(self.order[n][0]), len(place)))
        found = torch.tensor(numbers, device=self.order[0][0].device) if numbers else torch.zeros(0)
        dist.broadcast(found, 0)
        self.order = [self.order[number] for number in found.tolist()]
        self.turn = len(self.order)

    def end(self, *args: Any, **kwargs: Any) -> None:
        self._end(*args, **kwargs)
        self.came.clear()
        self.turn = 0


def watch_modules(offload: Any, together: Together) -> None:
    """`offload`: what fetches the parameters of a submodule, in stage 3."""
    coordinator = offload.get_param_coordinator()
    fetch = coordinator.fetch_sub_module

    def noted(submodule: Any, forward: bool) -> None:
        together.ask(submodule.ds_id, forward)
        fetch(submodule, forward)

    coordinator.fetch_sub_module = noted

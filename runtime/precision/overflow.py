"""Precision 16 where ranks have parts: all leave a step out, or none does, as one process would.

A gradient is a sum over the batch. One process computes it in half precision, where more than 65504 is infinite; of
several each computes a part of it, and DDP adds these in float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

INFINITE = 65520.0  # from here on float16 rounds to infinity
LOSSES = 16  # so often 2 ** 16 can be halved


class SharedScaler(ShardedGradScaler):
    """What overflowed on one rank overflowed. `parts`: into which each batch is cut; the mean over a part has gradients
    that are so many times as large as in the mean over the batch, and the scale is smaller by as much.
    """

    def __init__(self, device: str, scale: float, parts: int, group: Any) -> None:
        super().__init__(device, init_scale=scale / parts, process_group=group)
        self.parts = parts
        self._in_half: set[int] = set()  # parameters whose gradients are computed so, by id
        self._looked = self._losses = 0  # at losses; of this step

    def scale(self, outputs: Any) -> Any:
        """A loss in half precision is scaled in float32, as by GradScaler."""
        scaled = super().scale(outputs.float() if isinstance(outputs, torch.Tensor) else outputs)
        self._losses += 1
        if self.parts > 1 and self._looked < LOSSES and isinstance(scaled, torch.Tensor):
            self._looked += 1
            self._in_half.update(map(id, cast_parameters(scaled)))
        return scaled

    def unscale_(self, optimizer: Any) -> None:
        """The gradients are the means over all parts. Of several losses no sum can be told from a large one."""
        if self.parts > 1 and self._losses == 1:
            params = (p for group in optimizer.param_groups for p in group["params"] if id(p) in self._in_half)
            grads = [p.grad for p in params if p.grad is not None]
            if grads:
                largest = torch.nn.utils.get_total_norm(grads, math.inf)
                grads[0].masked_fill_(largest >= INFINITE / self.parts, math.inf)
        super().unscale_(optimizer)

    def update(self, new_scale: Any = None) -> None:
        self._losses = 0
        super().update(new_scale)


def cast_parameters(loss: torch.Tensor) -> Iterator[torch.Tensor]:
    """Those that autocast has cast on their way to the loss, and whose gradients are cast back."""
    ahead, seen = [loss.grad_fn], set()
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        for before, _ in node.next_functions:
            variable = getattr(before, "variable", None)
            if variable is not None and node.name().startswith("ToCopy"):
                yield variable
            ahead.append(before)

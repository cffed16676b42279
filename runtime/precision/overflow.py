"""Precision 16 where batches are cut: a step is left out when one process would leave it out.

A gradient is a sum over the batch. One process computes it in half precision, where more than 65504 is infinite; of
several each computes a part of it, and DDP adds these in float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

INFINITE = 65520.0  # from here on float16 rounds to infinity
LOSSES = 16  # so often 2 ** 16 can be halved


class CutScaler(torch.amp.GradScaler):
    """For batches that are cut into `parts`. The mean over a part has gradients that are so many times as large as in
    the mean over the batch: the scale is smaller by as much.
    """

    def __init__(self, device: str, scale: float, parts: int, **options: Any) -> None:
        super().__init__(device, init_scale=scale / parts, **options)
        self.parts = parts
        self._in_half: set[int] = set()  # parameters whose gradients are computed so, by id
        self._looked = self._losses = 0  # at losses; of this step

    def scale(self, outputs: Any) -> Any:
        scaled = super().scale(outputs)
        self._losses += 1
        if self._looked < LOSSES and isinstance(scaled, torch.Tensor) and scaled.grad_fn is not None:
            self._looked += 1
            self._in_half.update(map(id, cast_parameters(scaled)))
        return scaled

    def unscale_(self, optimizer: Any) -> None:
        """The gradients are the means over all parts. Of several losses no sum can be told from a large one."""
        params = (p for group in optimizer.param_groups for p in group["params"] if id(p) in self._in_half)
        grads = [p.grad for p in params if p.grad is not None]
        if grads and self._losses == 1:
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

"""One logged name over one epoch: float64 sums with their weights, folded now and then, never one device read a
step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

FOLD_AT = 256  # values kept before they are folded: a fold costs as much as a few steps


class Entry:
    """`reduce` is mean, sum, min, max, or a function of all values of the epoch (a 1-D tensor)."""

    def __init__(self, reduce: str | Callable, sync: bool):
        self.reduce, self.sync = reduce, sync
        self.values: list[Any] = []
        self.weights: list[float] = []
        self.total: Any = None  # what has been folded: float64
        self.weight = 0.0

    def add(self, value: Any, weight: float) -> None:
        """`weight` 0: a borrowed sample, which counts nowhere."""
        if weight:
            self.values.append(value)
            self.weights.append(weight)
            if len(self.values) >= FOLD_AT and isinstance(self.reduce, str):
                self.fold()

    def fold(self) -> None:
        if not self.values:
            return
        values = stacked(self.values)
        if self.reduce == "mean":
            part = (values * torch.tensor(self.weights, dtype=values.dtype, device=values.device)).sum()
        elif self.reduce == "sum":
            part = values.sum()
        else:
            part = values.min() if self.reduce == "min" else values.max()
        self.weight += sum(self.weights)
        self.total = part if self.total is None else join(str(self.reduce), self.total, part)
        self.values.clear()
        self.weights.clear()

    def state(self) -> tuple[Any, float]:
        """(total, weight): with a function as `reduce`, the total is the list of all values."""
        if not isinstance(self.reduce, str):
            return stacked(self.values).tolist() if self.values else [], float(len(self.values))
        self.fold()
        return (None if self.total is None else float(self.total)), self.weight


def stacked(values: list[Any]) -> torch.Tensor:
    """Numbers and scalar tensors as one float64 tensor of shape (n,), where the first tensor is."""
    home = next((value.device for value in values if isinstance(value, torch.Tensor)), torch.device("cpu"))
    wide = torch.float64 if home.type != "mps" else torch.float32
    if all(isinstance(value, torch.Tensor) for value in values):
        alike = len({(value.dtype, value.device, value.ndim) for value in values}) == 1
        if alike:  # the usual case: one call for all
            return torch.stack(values).reshape(len(values)).to(wide)
        return torch.stack([value.reshape(()).to(home, wide) for value in values])
    return torch.tensor([float(value) for value in values], dtype=wide, device=home)


def join(reduce: str, a: Any, b: Any) -> Any:
    """Two totals as one."""
    if reduce in ("mean", "sum"):
        return a + b
    if isinstance(a, torch.Tensor):
        return torch.minimum(a, b) if reduce == "min" else torch.maximum(a, b)
    return min(a, b) if reduce == "min" else max(a, b)


def joined(reduce: str | Callable, states: list[tuple[Any, float]]) -> float | None:
    """The value of an epoch from the states of the ranks; None where nobody counted anything."""
    if not isinstance(reduce, str):
        values = [value for state, _ in states for value in state]
        return float(reduce(torch.tensor(values))) if values else None
    counted = [(total, weight) for total, weight in states if total is not None]
    if not counted:
        return None
    total = counted[0][0]
    for other, _ in counted[1:]:
        total = join(reduce, total, other)
    return total / sum(weight for _, weight in counted) if reduce == "mean" else total

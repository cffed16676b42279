"""Values of a training step that has a part of a batch on each rank.

One process has one value a batch, and reduces those. The loss is known to be a mean over the batch (or a sum, where the
module says so), so that the whole batch's follows from the parts'. Any other value is taken for what it is on its part:
a mean is weighted by samples, a sum adds all parts up, a smallest or largest one is that of all parts.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .entry import Entry, stacked

if TYPE_CHECKING:
    from .logs import Logs

REDUCE: dict[str, Callable[[list[float]], float]] = {"sum": sum, "min": min, "max": max}

DOUBT = (
    "{0!r} is not the loss: reduce_fx={1} takes each process's part of a batch by itself, which is right of sums over "
    "samples, their smallest and their largest, and not of means; log means with reduce_fx='mean'"
)


class Row(NamedTuple):
    """One value: of which step, how it counts in a mean, and which part of the batch's samples it is of."""

    step: int
    value: float
    weight: float
    fraction: float


class Part(NamedTuple):
    """What one rank has of a name."""

    rows: list[Row]
    losses: bool  # each value was a loss of its step


class PartEntry(Entry):
    """Keeps every value of an epoch, with its step and the losses of that step."""

    def __init__(self, reduce: str | Callable, logs: Logs):
        super().__init__(reduce, sync=True)
        self.logs = logs
        self.steps: list[tuple[int, list[torch.Tensor]]] = []
        self.fractions: list[float] = []

    def add(self, value: Any, weight: float) -> None:
        fraction = self.logs.trainer.runtime.share
        if weight and fraction:
            self.values.append(value)
            self.weights.append(weight)
            self.steps.append(self.logs.step_losses())
            self.fractions.append(fraction)

    def state(self) -> tuple[Any, float]:
        values = numbers(self.values)
        losses = iter(numbers([loss for _, step in self.steps for loss in step]))
        known = [value in list(islice(losses, len(step))) for value, (_, step) in zip(values, self.steps, strict=True)]
        places = [step for step, _ in self.steps]
        rows = [Row(*row) for row in zip(places, values, self.weights, self.fractions, strict=True)]
        return Part(rows, all(known)), float(len(rows))


def numbers(values: list[Any]) -> list[float]:
    return stacked(values).tolist() if values else []


def together(reduce: str | None, parts: list[Part], loss_reduction: str) -> tuple[Any, float]:
    """What ranks have of a name as the state of one process's entry; `reduce` is None for a function."""
    rows = sorted((row for part in parts for row in part.rows), key=lambda row: row.step)
    if all(part.losses for part in parts):
        rows = whole_batches(rows, loss_reduction)
    values, weight = [row.value for row in rows], sum(row.weight for row in rows)
    if reduce is None:
        return values, weight
    if reduce == "mean":
        return (sum(row.value * row.weight for row in rows) if rows else None), weight
    return (REDUCE[reduce](values) if rows else None), weight


def in_doubt(reduce: str | None, parts: list[Part]) -> bool:
    """May one process have another value? Means of parts, under any other reduction, are not those of batches, and
    nothing tells a mean from a sum. (What are whole numbers are counts.)
    """
    numbers = [row.value for part in parts for row in part.rows if row.fraction < 1]
    return reduce != "mean" and not all(part.losses for part in parts) and not all(map(float.is_integer, numbers))


def whole_batches(rows: list[Row], loss_reduction: str) -> list[Row]:
    """One row a step from those of its parts, which are losses."""
    found = []
    for step, of_step in groupby(rows, lambda row: row.step):
        parts = list(of_step)
        value = sum(row.value * row.fraction if loss_reduction == "mean" else row.value for row in parts)
        found.append(Row(step, value, sum(row.weight for row in parts), 1.0))
    return found

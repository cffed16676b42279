"""Which part of what is drawn for a whole batch belongs to a rank: arithmetic on shapes, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """In dimension `dim` of a tensor that one process would draw, `whole` long, a rank's rows are start..stop."""

    dim: int
    whole: int
    start: int
    stop: int

    def shape(self, own: Sequence[int]) -> tuple[int, ...]:
        """The shape for the whole batch, from that for this rank's samples."""
        return (*own[: self.dim], self.whole, *own[self.dim + 1 :])


class Rows:
    """A rank's samples start..stop of a global batch of `whole`; a rank that only borrows a sample has the first."""

    def __init__(self) -> None:
        self.set(0, 1, 1)
        self.flattened: set[tuple[int, ...]] = set()  # shapes behind n·k rows, with k, that were met where n > 1

    def set(self, start: int, stop: int, whole: int) -> None:
        self.start, self.stop, self.whole = start, max(stop, start + 1), whole

    def place(self, shape: Sequence[int], flat: bool = False, heads: bool = False) -> Place | None:
        """Where the batch is in `shape`; None where it is not: what has its own number of rows is alike on all ranks.

        The first dimension that is as long as this rank has samples. With `flat` also n·k rows of the first one, k for
        each sample; with `heads` there are as many as an attention has, even if that makes them as many as one process
        has samples.
        """
        count = self.stop - self.start
        if not shape or count == self.whole or (shape[0] == self.whole and not heads):
            return None
        if count in shape[: 1 if heads else None]:
            return Place(list(shape).index(count), self.whole, self.start, self.stop)
        times, rest = divmod(shape[0], count)
        if not flat or rest or not times:
            return None
        kind = (times, *shape[1:])
        if count > 1:
            self.flattened.add(kind)
        return Place(0, *(times * n for n in (self.whole, self.start, self.stop))) if kind in self.flattened else None

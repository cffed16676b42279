"""Which part of what is drawn for a whole batch belongs to a rank: arithmetic on shapes, nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .readings import Reading, Readings


class Place(NamedTuple):
    """In dimension `dim` of a tensor that one process would draw, `whole` long, a rank's rows are start..stop; `views`
    times one after another, where the tensor holds so many views of the batch.
    """

    dim: int
    whole: int
    start: int
    stop: int
    views: int = 1

    def shape(self, own: Sequence[int]) -> tuple[int, ...]:
        """The shape for the whole batch, from that for this rank's samples."""
        return (*own[: self.dim], self.views * self.whole, *own[self.dim + 1 :])

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """(start, length) of this rank's rows."""
        return [(view * self.whole + self.start, self.stop - self.start) for view in range(self.views)]


class Rows:
    """A rank's samples start..stop of a global batch of `whole`; a rank that only borrows a sample has the first."""

    def __init__(self, fixed: Iterable[Sequence[int]] = ()) -> None:
        self.readings = Readings(fixed)
        self.found = False  # has a step drawn for samples? Also from a generator of the script's own
        self.moved = False  # has a step put the batch behind another dimension?
        self.set(0, 1, 1)

    def set(self, start: int, stop: int, whole: int) -> None:
        self.start, self.stop, self.whole = (start, stop, whole) if stop > start else (0, 1, whole)
        self.count = self.stop - self.start
        self.views: set[int] = set()  # how many views of the batch the step has put one behind the other
        self.singles: dict[str, int] = {}  # how often the step has drawn a single number

    @property
    def divided(self) -> bool:
        return self.count != self.whole

    def place(self, shape: Sequence[int], name: str = "", flat: bool = False, only: int | None = None) -> Place | None:
        """Where the batch is in `shape`, drawn by `name`; None where it is not: what has its own number of rows is
        alike on all ranks.

        `flat`: of an activation, which may also have n·k rows, k for each sample; `only`: the batch's dimension, where
        it is known.
        """
        if not shape or not self.divided:
            return None
        reading = self.readings.read(name, tuple(shape), self, flat, only)
        if reading is None:
            return None
        dim, times = reading
        self.found, self.moved = True, self.moved or dim > 0
        if times in self.views and times > 1:
            return Place(dim, self.whole, self.start, self.stop, times)
        return Place(dim, *(times * n for n in (self.whole, self.start, self.stop)))

    def single(self, name: str) -> None:
        """The step has drawn one number."""
        self.singles[name] = self.singles.get(name, 0) + 1


__all__ = ["Place", "Reading", "Rows"]

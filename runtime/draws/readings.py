"""What the dimensions of a drawn tensor mean: which of them counts samples.

Steps of more and of fewer samples show it: what grows with them is the batch's. Before that a rule decides, and what it
may have taken wrongly is told after the first epoch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from .rows import Rows

MASKS = ("bernoulli_", "native_dropout")  # of activations: no noise for weights
MOST = 500  # shapes that are kept in mind
MIXED = "{} of the samples, which puts each process's own into an order"
OWN = (str(Path(torch.__file__).parent), str(Path(__file__).parent.parent))


class Reading(NamedTuple):
    """Dimension `dim` has `times` rows for each sample."""

    dim: int
    times: int


class Decision(NamedTuple):
    chosen: Reading | None  # None: drawn alike on all ranks
    possible: tuple[Reading, ...]
    doubtful: bool
    line: str


class Readings:
    """Of one fit. `fixed`: the shapes of the module's parameters, which noise for weights has too."""

    def __init__(self, fixed: Iterable[Sequence[int]] = ()) -> None:
        self.fixed = {tuple(shape) for shape in fixed}
        self.sizes = {size for shape in self.fixed for size in shape}
        self.counts: dict[tuple, set[int]] = {}  # {a reading of shapes, or a shape: with how many samples it was met}
        self.shown: dict[tuple, Reading] = {}  # what steps of several sizes have shown
        self.first: dict[tuple, Decision] = {}  # in the epoch that is learned from
        self.reasons: dict[str, str] = {}  # what is not as in one process, for certain: {why: the line}
        self.loops: dict[str, set[tuple[int, int]]] = {}  # {who draws: (single numbers a step, samples)}

    def read(self, name: str, shape: tuple[int, ...], rows: Rows, flat: bool, only: int | None) -> Reading | None:
        asked = (name, shape, rows.count, rows.whole, flat, only, bool(rows.views))
        if asked in self.shown:
            return self.shown[asked]
        possible = tuple(_possible(shape, rows.count, only))
        before = [reading for reading in possible if self.grows(name, shape, reading, rows.count)]
        if before:
            decision = Decision(before[0], possible, False, "")
        else:
            alike = name not in MASKS and self.counts.get((name, shape), set()) - {rows.count}
            chosen = None if alike else _usual(shape, rows, possible, flat, only)
            doubtful = not alike and self.doubtful(name, shape, rows, chosen, possible, flat, only)
            decision = Decision(chosen, possible, doubtful, "")
        if before and len(self.shown) < MOST:
            self.shown[asked] = before[0]
        if asked not in self.first and len(self.first) < MOST:
            self.first[asked] = decision._replace(line=line())
            self.counts.setdefault((name, shape), set()).add(rows.count)
            for reading in possible:
                self.counts.setdefault(_key(name, shape, reading), set()).add(rows.count)
        return decision.chosen

    def grows(self, name: str, shape: tuple[int, ...], reading: Reading, count: int) -> bool:
        """Has the like of `shape` been met with another number of samples, and grown with it?"""
        return bool(self.counts.get(_key(name, shape, reading), set()) - {count})

    def doubtful(
        self,
        name: str,
        shape: tuple[int, ...],
        rows: Rows,
        chosen: Reading | None,
        possible: Sequence[Reading],
        flat: bool,
        only: int | None,
    ) -> bool:
        """May the rule be wrong?"""
        if only is not None:
            return False
        if rows.count == 1:
            return shape == (1,)
        exact = [reading for reading in possible if reading.times == 1]
        if chosen is None:
            return bool(exact) or (not flat and bool(possible))
        if chosen.times > 1:
            return rows.moved and chosen.times not in rows.views
        of_weights = shape in self.fixed if flat else rows.count in self.sizes
        return rows.moved and len(exact) > 1 if name in MASKS else len(exact) > 1 or of_weights

    def expanded(self, name: str, values: torch.Tensor, dim: int) -> bool:
        """Is it one row for all samples? One sample alone does not show it: then as where there were more."""
        key = (name, "expanded", values.dim() - dim)
        if values.shape[dim] > 1 and values.stride(dim) == 0:
            self.counts.setdefault(key, set()).add(values.shape[dim])
            return True
        return values.shape[dim] == 1 and key in self.counts

    def say(self, why: str) -> None:
        """What the step draws now is not what one process draws."""
        if why not in self.reasons:
            self.reasons[why] = line()

    def learn(self, counts: dict[tuple, set[int]]) -> None:
        """Another rank's, which has met other numbers of samples."""
        for key, met in counts.items():
            self.counts.setdefault(key, set()).update(met)

    def looped(self, name: str, numbers: int, samples: int) -> None:
        self.loops.setdefault(name, set()).add((numbers, samples))

    def mistaken(self) -> list[str]:
        """What was met and taken wrongly, or may have been."""
        found: dict[str, None] = {}
        for (name, shape, count, *_), decision in self.first.items():
            grown = [reading for reading in decision.possible if self.grows(name, shape, reading, count)]
            same = bool(self.counts[name, shape] - {count})
            chosen = decision.chosen
            order = chosen is not None and chosen.times > 1 and decision.doubtful  # of rows, which no number shows
            if (chosen in grown and not order) or (chosen is None and not grown and (same or not decision.doubtful)):
                continue
            if grown or same or decision.doubtful:
                says = f"{name} of {list(shape)} with {count} samples ({decision.line}), taken as {_says(chosen)}"
                found[says] = None
        return [*found, *self.one_by_one()]

    def one_by_one(self) -> Iterator[str]:
        """Who draws a number for each sample in a loop, as far as numbers show it."""
        for name, pairs in self.loops.items():
            least = 2 if name == "random" else 1  # the words of one of its numbers
            several = len({samples for _, samples in pairs}) > 1
            constant = several and len({numbers for numbers, _ in pairs}) == 1
            if not constant and all(numbers >= least * samples for numbers, samples in pairs):
                yield f"{name}, which draws for one sample after the other"


def _possible(shape: tuple[int, ...], count: int, only: int | None) -> Iterator[Reading]:
    for dim, size in enumerate(shape):
        if size == count and only in (None, dim):
            yield Reading(dim, 1)
    times, rest = divmod(shape[0], count)
    if not rest and times > 1 and only in (None, 0):
        yield Reading(0, times)


def _usual(
    shape: tuple[int, ...], rows: Rows, possible: Sequence[Reading], flat: bool, only: int | None
) -> Reading | None:
    """The rule, where nothing is known yet: the first dimension that is as long as this rank has samples."""
    exact = [reading for reading in possible if reading.times == 1]
    views = [reading for reading in possible if reading.times in rows.views]
    if views and flat:
        return views[0]
    if shape[0] == rows.whole and only is None and not (flat and exact):
        return None  # numbers for all samples
    if rows.count == 1 and shape == (1,):
        return None  # a coin
    if exact:
        return exact[0]
    return possible[0] if flat and possible and rows.count > 1 else None


def _key(name: str, shape: tuple[int, ...], reading: Reading) -> tuple:
    return (name, reading, shape[: reading.dim], shape[reading.dim + 1 :])


def _says(reading: Reading | None) -> str:
    if reading is None:
        return "the same on all processes"
    if reading.times > 1:
        return f"{reading.times} rows one after the other for each sample"
    return f"a row a sample{f' in dimension {reading.dim}' if reading.dim else ''}"


def line() -> str:
    """file:line of the user's code that runs now."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"

"""Who takes which samples: arithmetic on lists of indices, nothing else.

Three rules. `slice`: every batch is cut into one contiguous part a rank, sizes differing by at most one, bigger parts
first. `group`: as many consecutive batches as there are ranks form one global batch, rank r takes the r-th; an
incomplete last group is pooled and cut like a slice. `deal`: whole batches go round, rank r takes batches r, r +
world, ... (evaluation).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

RULES = ("slice", "group", "deal")


class Part(NamedTuple):
    """What one rank loads of one global batch. `count` is 0 where the one sample in `items` is only borrowed."""

    items: Any
    count: int  # type: ignore[assignment]
    total: int


class Share(NamedTuple):
    """A whole batch, and where this rank's samples are in it."""

    batch: Sequence
    own: slice

    @classmethod
    def of(cls, batch: Sequence, rank: int, world: int) -> Share:
        """A rank with nothing borrows the first sample."""
        start, stop = bounds(len(batch), rank, world)
        return cls(batch, slice(start, stop) if stop > start else slice(0, 1))


def bounds(total: int, rank: int, world: int) -> tuple[int, int]:
    """Where the part of `rank` starts and ends in `total` samples."""
    size, extra = divmod(total, world)
    start = rank * size + min(rank, extra)
    return start, start + size + (rank < extra)


def cut(items: Sequence, rank: int, world: int) -> Part:
    """The part of `rank`; a rank with nothing borrows the first sample, and counts 0."""
    start, stop = bounds(len(items), rank, world)
    if start == stop:
        return Part(items[:1], 0, len(items))
    return Part(items[start:stop], stop - start, len(items))


def pick(group: list[Sequence], rank: int, world: int) -> Part:
    """The part of `rank` in a group of up to `world` batches."""
    if len(group) == world:
        return Part(group[rank], len(group[rank]), sum(map(len, group)))
    return cut([item for batch in group for item in batch], rank, world)


def parts(batches: Iterable[Sequence], rule: str, rank: int, world: int) -> Iterator[Part]:
    """This rank's parts of `batches` under `rule`. Draws no batch before it is needed."""
    if rule == "slice":
        yield from (cut(batch, rank, world) for batch in batches)
    elif rule == "group":
        source = iter(batches)
        while group := list(itertools.islice(source, world)):
            yield pick(group, rank, world)
    else:
        for batch in itertools.islice(batches, rank, None, world):
            yield Part(batch, len(batch), len(batch))


def steps(batches: int, rule: str, rank: int, world: int) -> int:
    """How many parts `parts` gives for that many batches."""
    if rule == "slice":
        return batches
    if rule == "group":
        return -(-batches // world)
    return len(range(rank, batches, world))

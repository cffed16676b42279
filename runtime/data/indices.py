"""Which samples form a batch is drawn once, by rank 0, as one process would draw it, and shared.

Sequential samplers need no sharing. torch's own random samplers draw everything when they start, so one message an
epoch is enough. Any other sampler may look at the world between two batches and is shared batch by batch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch.distributed as dist
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler

from ..collectives import broadcast_object
from .batches import Rows

_END = "the sampler is exhausted"


def is_sequential(sampler: Any) -> bool:
    return type(sampler) is SequentialSampler or isinstance(sampler, range)


def draws_at_start(sampler: Any) -> bool:
    """Does it take all it needs from the default generator when it starts? (One with its own generator may not.)"""
    return type(sampler) in (RandomSampler, SubsetRandomSampler, WeightedRandomSampler) and sampler.generator is None


def batched(indices: Iterable, size: int, drop_last: bool) -> Iterator[list]:
    """Lists of `size` indices; torch's BatchSampler does the same to a sampler."""
    source = iter(indices)
    while batch := list(itertools.islice(source, size)):
        if len(batch) < size and drop_last:
            return
        yield batch


class SharedBatches:
    """The batches of one process, alike on every rank.

    `sampler` is the loader's index sampler: it gives lists of indices, or single indices where the loader does not
    batch. With `ahead`, everything is drawn and shared at the start (evaluation: no messages between batches). `drew`
    is called where rank 0 may have drawn; with True where it may at every batch.
    """

    def __init__(
        self,
        sampler: Any,
        group: dist.ProcessGroup,
        rank: int,
        ahead: bool = False,
        limit: int | None = None,
        drew: Callable[[bool], None] = lambda often: None,
    ):
        self.sampler, self.group, self.rank, self.ahead, self.limit = sampler, group, rank, ahead, limit
        self.drew = drew

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Iterator:
        inner = self.sampler.sampler if type(self.sampler) is BatchSampler else None
        if is_sequential(inner if inner is not None else self.sampler):
            return iter(self.sampler)
        if isinstance(self.sampler, Rows):
            return iter(self.sampler) if self.sampler.is_sequential else self._once(iter(self.sampler), self.limit)
        if inner is not None and draws_at_start(inner):
            return batched(self._once(inner), self.sampler.batch_size, self.sampler.drop_last)
        drawn = iter(self.sampler) if self.rank == 0 else None  # now: a sampler of the user's may draw when it starts
        return self._once(drawn, self.limit) if self.ahead else self._one_by_one(drawn)

    def _once(self, sampler: Iterable | None, limit: int | None = None) -> Iterator:
        drawn = list(itertools.islice(sampler, limit)) if self.rank == 0 and sampler is not None else None
        indices = broadcast_object(drawn, self.group, self.rank)
        self.drew(False)
        yield from indices

    def _one_by_one(self, drawn: Iterator | None) -> Iterator:
        while True:
            batch = next(drawn, _END) if drawn is not None else None
            batch = broadcast_object(batch, self.group, self.rank)
            if isinstance(batch, str) and batch == _END:
                return
            self.drew(True)
            yield batch

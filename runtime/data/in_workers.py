"""Samples that are drawn at random as a loader's workers load them (crops, flips), with the global batch kept.

A worker of one process draws for all samples of its batches, one after the other. The workers of every rank therefore
begin with the seed of rank 0's, load whole batches, and keep their rank's samples; in evaluation, where whole batches
go round, they load all batches and keep their rank's. Where the first batch of a worker shows that nothing is drawn, it
goes on with its rank's samples alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import Dataset, get_worker_info

from ..checkpoint import randomness
from .divide import Share
from .drawing import load
from .move import batch_size_of, slice_batch

KINDS = ("torch", "random", "numpy")  # of generators that a worker seeds
NOTHING, SAMPLES, COLLATING = 1, 2, 3  # what draws; 0: nobody knows yet


class WorkerSamples(Dataset):
    """A map-style data set for a rank's own DataLoader with workers; `collate` is that loader's collate_fn, and `begin`
    its worker_init_fn. It is asked for a `Share` at a time.
    """

    def __init__(self, dataset: Any, collate_fn: Callable, init_fn: Callable | None):
        self.dataset, self.collate_fn, self.init_fn = dataset, collate_fn, init_fn
        self.learned = torch.zeros(1, dtype=torch.uint8).share_memory_()  # by a worker, for those of the next epoch
        self.draws, self.drew = 0, False
        self.share = Share((), slice(0))

    def __len__(self) -> int:
        return len(self.dataset)

    def begin(self, worker: int) -> None:
        """What asks for the worker's data set gets the user's."""
        object.__setattr__(get_worker_info(), "dataset", self.dataset)
        self.draws = int(self.learned)
        if self.init_fn is not None:
            self.init_fn(worker)

    def __getitems__(self, share: Share) -> list:
        self.share = share
        if self.draws == NOTHING:
            return load(self.dataset, share.batch[share.own])
        if self.draws:
            return load(self.dataset, share.batch)
        before = randomness.capture(KINDS)
        samples = load(self.dataset, share.batch)
        self.drew = randomness.differs(before, randomness.capture(KINDS))
        return samples

    def collate(self, samples: list) -> Any:
        """None for a batch of another rank's."""
        if self.draws == NOTHING:
            return self.collate_fn(samples) if samples else None
        if self.draws == COLLATING:
            return self.cut(samples)
        own = samples[self.share.own]
        if self.draws == SAMPLES:
            return self.collate_fn(own) if own else None
        before = randomness.capture(KINDS)
        batch = self.collate_fn(own or samples)
        self.draws = SAMPLES if self.drew else NOTHING
        if randomness.differs(before, randomness.capture(KINDS)):
            randomness.restore(before)
            self.draws, batch = COLLATING, self.cut(samples)
        self.learned.fill_(self.draws)
        return batch if own else None

    def cut(self, samples: list) -> Any:
        """This rank's part of the whole batch, collated; None where it has none."""
        start, stop, _ = self.share.own.indices(len(samples))
        batch = self.collate_fn(samples)
        if stop == 0:
            return None
        if batch_size_of(batch) != len(samples):
            return self.collate_fn(samples[start:stop])
        return slice_batch(batch, start, stop)

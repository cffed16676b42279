"""Samples that are drawn at random as a loader's workers load them (crops, flips), with the global batch kept.

A worker of one process draws for all samples of its batches, one after the other. Where the code of a data set or of
its collate_fn may draw, the workers of every rank therefore begin with the seed of rank 0's, load whole batches, and
keep their rank's samples; in evaluation, where whole batches go round, they load all and keep their rank's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from ..checkpoint import randomness
from .divide import Share
from .drawing import load
from .move import holds_tensors, slice_batch

KINDS = ("torch", "random", "numpy")  # of generators that a worker seeds


class WorkerSamples(Dataset):
    """A map-style data set for a rank's own DataLoader with workers; `collate` is that loader's collate_fn, and `begin`
    its worker_init_fn. It is asked for a `Share` at a time.
    """

    def __init__(self, dataset: Any, collate_fn: Callable, init_fn: Callable | None, collating_draws: bool):
        self.dataset, self.collate_fn, self.init_fn = dataset, collate_fn, init_fn
        self.collating_draws = collating_draws
        self.share = Share((), slice(0))

    @classmethod
    def of(cls, loader: DataLoader) -> WorkerSamples | None:
        """None where nothing shows that workers draw: each rank's load its own samples then."""
        from ..draws.speaking import data_may_draw  # whose package has this one

        collating = data_may_draw(loader.collate_fn)
        if not loader.num_workers or not (collating or data_may_draw(loader.dataset)):
            return None
        return cls(loader.dataset, loader.collate_fn, loader.worker_init_fn, collating)

    def __len__(self) -> int:
        return len(self.dataset)

    def begin(self, worker: int) -> None:
        """What asks for the worker's data set gets the user's."""
        object.__setattr__(get_worker_info(), "dataset", self.dataset)
        if self.init_fn is not None:
            self.init_fn(worker)

    def __getitems__(self, share: Share) -> Any:
        self.share = share
        return load(self.dataset, share.batch)

    def collate(self, samples: Any) -> Any:
        """This rank's part of the batch; None where it has none."""
        start, stop, _ = self.share.own.indices(total := len(self.share.batch))
        single = isinstance(samples, list) and len(samples) == total  # what `__getitems__` gives may be a batch already
        if single and not self.collating_draws:
            return self.collate_fn(samples[start:stop]) if stop else None
        before = randomness.capture(KINDS)
        batch = self.collate_fn(samples)
        if not stop or (start, stop) == (0, total):
            return batch if stop else None
        if has_rows(batch, total):
            return slice_batch(batch, start, stop)
        after = randomness.capture(KINDS)
        randomness.restore(before)
        own = self.collate_fn(samples[start:stop] if single else load(self.dataset, self.share.batch[start:stop]))
        randomness.restore(after)
        return own


def has_rows(batch: Any, total: int) -> bool:
    """Whether all that a batch holds has one row for each of its samples."""
    if isinstance(batch, Mapping):
        return all(has_rows(value, total) for value in batch.values())
    if isinstance(batch, (list, tuple)) and holds_tensors(batch):
        return all(has_rows(value, total) for value in batch)
    of_rows = isinstance(batch, (torch.Tensor, list, tuple)) or type(batch).__module__ == "numpy"
    return of_rows and getattr(batch, "ndim", 1) > 0 and len(batch) == total

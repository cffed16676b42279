"""Samples that are drawn at random as they are loaded (crops, flips, masks), in the process that trains.

One process draws for all samples of a batch, one after the other. Where batches are cut each rank therefore loads the
whole batch, keeps its own samples and collates those. In workers, and where nothing is drawn, it loads only its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch.utils.data import Dataset

from ..checkpoint import randomness
from ..collectives import gather_objects

if TYPE_CHECKING:
    from ..draws import OneStream
    from ..handle import Runtime


class DrawnSamples(Dataset):
    """A map-style data set for a rank's own DataLoader without workers; `collate` is that loader's collate_fn.

    `batch` and `own`: the indices of the current batch, and where this rank's are in it.
    """

    def __init__(self, dataset: Any, collate_fn: Any, runtime: Runtime):
        self.dataset, self.collate_fn, self.runtime = dataset, collate_fn, runtime
        self.batch: Sequence = ()
        self.own = slice(0)
        self.draws: bool | None = None  # does loading draw? Known with the first batch
        self.open: OneStream | None = None  # between loading and collating

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, indices: list) -> list:
        stream = self.runtime.stream
        if stream is None:
            return self.load(indices)
        if self.draws is None:
            self.draws = self.drawn(indices)
        if not self.draws:
            return self.load(indices)
        stream.begin(whole=True)
        try:
            samples = self.load(self.batch)[self.own]
        except BaseException:
            stream.end()
            raise
        self.open = stream
        return samples

    def load(self, indices: Sequence) -> list:
        several = getattr(self.dataset, "__getitems__", None)
        return several(indices) if several is not None else [self.dataset[index] for index in indices]

    def collate(self, samples: list) -> Any:
        stream, self.open = self.open, None
        if stream is None:
            return self.collate_fn(samples)
        try:
            stream.rows.set(self.own.start, self.own.stop, len(self.batch))
            with stream.mode:
                return self.collate_fn(samples)
        finally:
            stream.end()

    def drawn(self, indices: list) -> bool:
        """Does loading these samples, or those of another rank, draw from the generators that all share?"""
        before = randomness.capture()
        self.collate_fn(self.load(indices))
        drew = randomness.differs(before, randomness.capture())
        randomness.restore(before)
        return any(gather_objects(drew, self.runtime.group, self.runtime.world_size, "whether its samples are drawn"))

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

    `batch` and `own`: the indices of the current batch, and where this rank's are in it. With the first batch the ranks
    learn whether samples are drawn, with the second whether collating them draws; who does neither is left alone.
    """

    def __init__(self, dataset: Any, collate_fn: Any, runtime: Runtime):
        self.dataset, self.collate_fn, self.runtime = dataset, collate_fn, runtime
        self.batch: Sequence = ()
        self.own = slice(0)
        self.samples_draw: bool | None = None
        self.draws: bool | None = None  # the samples or their collating
        self.agreed = False  # do the ranks know of each other's collating?
        self.open: OneStream | None = None  # between loading and collating

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, indices: list) -> list:
        stream = self.runtime.stream
        if stream is None:
            return self.load(indices)
        if self.draws is not None and not self.agreed:
            self.draws, self.agreed = self.on_any_rank(self.draws), True
        if self.draws is False:
            return self.load(indices)
        stream.begin(whole=True)
        try:
            samples = self.drawn(indices)
        except BaseException:
            stream.end()
            raise
        self.open = stream
        return samples

    def drawn(self, indices: list) -> list:
        """This rank's samples, from the shared stream."""
        if self.samples_draw is None:
            before = randomness.capture()
            samples = self.load(indices)
            self.samples_draw = self.on_any_rank(randomness.differs(before, randomness.capture()))
            if not self.samples_draw:
                return samples
            randomness.restore(before)
        return self.load(self.batch)[self.own] if self.samples_draw else self.load(indices)

    def load(self, indices: Sequence) -> list:
        several = getattr(self.dataset, "__getitems__", None)
        return several(indices) if several is not None else [self.dataset[index] for index in indices]

    def collate(self, samples: list) -> Any:
        stream, self.open = self.open, None
        if stream is None:
            return self.collate_fn(samples)
        try:
            stream.rows.set(self.own.start, self.own.stop, len(self.batch))
            before = randomness.capture() if self.draws is None else None
            with stream.mode:
                batch = self.collate_fn(samples)
            if before is not None:
                self.draws = bool(self.samples_draw) or randomness.differs(before, randomness.capture())
            return batch
        finally:
            stream.end()

    def on_any_rank(self, here: bool) -> bool:
        return any(gather_objects(here, self.runtime.group, self.runtime.world_size, "whether samples are drawn"))

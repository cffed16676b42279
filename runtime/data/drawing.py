"""Samples that are drawn at random as they are loaded (crops, flips, masks), in the process that trains.

One process draws for all samples of a batch, one after the other. Where batches are cut each rank therefore loads the
whole batch, keeps its own samples and collates those; where whole batches go round it loads those of all ranks. Where
nothing is drawn it loads only its own. in_workers.py does the same where workers load.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader, Dataset

from ..checkpoint import randomness
from ..collectives import broadcast_object, gather_objects
from .divide import Part

if TYPE_CHECKING:
    from ..draws import OneStream
    from ..handle import Runtime
    from .loaders import IndexedLoader


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
            self.draws, self.agreed = on_any_rank(self.runtime, self.draws), True
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
            self.samples_draw = on_any_rank(self.runtime, randomness.differs(before, randomness.capture()))
            if not self.samples_draw:
                return samples
            randomness.restore(before)
        return self.load(self.batch)[self.own] if self.samples_draw else self.load(indices)

    def load(self, indices: Sequence) -> list:
        return load(self.dataset, indices)

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


def dealt(loader: IndexedLoader, batches: Iterator) -> Iterator[tuple[Part, Any]]:
    """This rank's `batches` of an evaluation, which `loader` has begun. Where its first one shows on any rank that
    samples are drawn, or their collating, all of them are loaded from rank 0's stream, which goes on as one process's.
    """
    runtime, sampler = loader.runtime, loader.sampler_parts
    noted, every = sampler.noted, sampler.every
    start = list(islice(every, 1))  # a sampler draws now, and this is not the samples' drawing
    before = randomness.capture()
    first = list(islice(batches, 1))
    if on_any_rank(runtime, randomness.differs(before, randomness.capture())):
        randomness.restore(before)
        yield from _all_loaded(loader.loader, runtime, chain(start, every), loader.part, loader.parts)
        return
    del every
    sampler.every = iter(())  # holds no batch back for a second reader
    for batch in chain(first, batches):
        yield noted.popleft(), batch


def _all_loaded(
    loader: DataLoader, runtime: Runtime, every: Iterable[Sequence], part: int, parts: int
) -> Iterator[tuple[Part, Any]]:
    """Batch after batch, as one process loads them; this rank's are given."""
    shared = broadcast_object(randomness.capture() if runtime.rank == 0 else None, runtime.group, runtime.rank)
    for number, indices in enumerate(every):
        own = randomness.capture()
        if runtime.rank:
            randomness.restore(shared)
        batch = loader.collate_fn(load(loader.dataset, indices))
        if runtime.rank:
            shared = randomness.capture()
            randomness.restore(own)
        if number % parts == part:
            yield Part(indices, len(indices), len(indices)), batch


def load(dataset: Any, indices: Sequence) -> list:
    """The samples of one batch, as a DataLoader without workers fetches them."""
    several = getattr(dataset, "__getitems__", None)
    return several(indices) if several is not None else [dataset[index] for index in indices]


def on_any_rank(runtime: Runtime, here: bool) -> bool:
    return any(gather_objects(here, runtime.group, runtime.world_size, "whether samples are drawn"))

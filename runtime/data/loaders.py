"""A user's loader, divided: all its settings kept, its batches cut by one of the rules in divide.py.

A DataLoader over a map-style data set loads only this rank's samples. Everything else that can be iterated (streams,
generators, loaders of the user's own) is read by rank 0, as one process would read it, and each batch is sent and
cut.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset

from ..collectives import broadcast_object
from ..seeding import rank_seed
from .advance import Resume, after
from .batches import Batches
from .combined import loaders_of
from .divide import Part, Share, bounds, parts, steps
from .drawing import DrawnSamples, dealt
from .in_workers import WorkerSamples
from .indices import SharedBatches
from .move import batch_size_of, move_to, slice_batch

if TYPE_CHECKING:
    from ..handle import Runtime


def divide_loader(
    loader: Any, runtime: Runtime, train: bool, limit: int | None = None, moves: bool = True, alone: bool = True
) -> Any:
    """`loader` for this rank; with one process on the CPU, the very same object.

    `train` decides the rule (whole batches go round in evaluation) and whether `runtime.share` follows this loader.
    `limit`: at most so many of the script's batches are wanted (evaluation). `moves`: are its batches to be brought to
    the device? A Trainer does that itself. `alone`: it is not one of several that an evaluation goes through together.
    """
    if runtime.world_size == 1 or already_divided(loader):
        return PlacedLoader(loader, runtime) if moves and not runtime.on_cpu else loader
    if isinstance(loader, Batches):
        loader = loader.loader()
    several_hold_a_part = runtime.strategy.data_place()[1] < runtime.world_size  # and must see the very same samples
    if is_indexed(loader) and not several_hold_a_part:
        return IndexedLoader(loader, runtime, train, limit, moves, alone)
    return SentLoader(loader, runtime, train, limit, moves)


def already_divided(loader: Any) -> bool:
    """Does the script's own DistributedSampler divide the data?"""
    samplers = (getattr(loader, "sampler", None), getattr(getattr(loader, "batch_sampler", None), "sampler", None))
    return any(isinstance(sampler, DistributedSampler) and sampler.num_replicas > 1 for sampler in samplers)


def is_indexed(loader: Any) -> bool:
    """A DataLoader that asks a map-style data set for lists of indices, and iterates as torch's own does."""
    return (
        isinstance(loader, DataLoader)
        and type(loader).__iter__ is DataLoader.__iter__
        and not isinstance(loader.dataset, IterableDataset)
        and loader.batch_sampler is not None
    )


def starts_workers(loader: DataLoader) -> bool:
    """Do workers begin with each epoch, from a seed that is drawn then?"""
    return loader.num_workers > 0 and not loader.persistent_workers


class PlacedLoader:
    """One process on a device: the user's loader, its batches moved. Whatever is not known here, the user's loader
    answers.
    """

    def __init__(self, loader: Any, runtime: Runtime):
        self.loader, self.runtime = loader, runtime

    def __iter__(self) -> Iterator:
        device = self.runtime.device
        return (move_to(batch, device) for batch in self.loader)

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        if name in ("loader", "runtime"):
            raise AttributeError(name)
        return getattr(self.loader, name)


class DividedLoader(PlacedLoader):
    """What the two ways of dividing have in common: the rule, the length, and telling the runtime each share."""

    indices: Any = None  # of the current batch's samples, where they are known and wanted

    def __init__(self, loader: Any, runtime: Runtime, train: bool, limit: int | None, moves: bool = True):
        super().__init__(loader, runtime)
        self.train, self.limit, self.moves = train, limit, moves
        self.part, self.parts = runtime.strategy.data_place()
        self.rule = ("slice" if runtime.global_batch else "group") if train else "deal"

    def __len__(self) -> int:
        whole = len(self.loader) if self.limit is None else min(len(self.loader), self.limit)
        return steps(whole, self.rule, self.part, self.parts)

    def __iter__(self) -> Iterator:
        if not self.train:
            self.runtime.sync_buffers()
        return self._placed(self.pairs())  # begins now: beside other loaders, draws come in the order of one process

    def _placed(self, pairs: Iterator[tuple[Part, Any]]) -> Iterator:
        runtime, device = self.runtime, self.runtime.device
        try:
            for part, batch in pairs:
                if self.train:
                    runtime.note_share(part.count, part.total)
                self.indices = part.items
                yield move_to(batch, device) if self.moves else batch
        finally:
            if self.train:
                runtime.forget_share()

    def forget_stream(self, often: bool) -> None:
        """Rank 0 may have drawn, before each batch if it does so `often`."""
        if self.train and self.runtime.stream is not None:
            self.runtime.stream.forget(often)

    def without(self, resume: Resume) -> DividedLoader:
        """This loader for one epoch without the script's batches that are behind; see skip.py."""
        raise NotImplementedError

    def pairs(self) -> Iterator[tuple[Part, Any]]:
        raise NotImplementedError


class _Parts:
    """The batch sampler of the rank's own DataLoader; `noted` remembers the parts that are on their way."""

    def __init__(self, batches: Iterable, rule: str, rank: int, world: int, limit: int | None):
        self.batches, self.rule, self.rank, self.world, self.limit = batches, rule, rank, world, limit
        self.noted: deque[Part] = deque()
        self.skip: Resume | None = None
        self.keeps_indices = False  # of the samples, for who asks which they are
        self.drawn: DrawnSamples | WorkerSamples | None = None  # who has to know the whole batch
        self.seeds: Callable[[], None] | None = None  # alike on all ranks, for the workers that start then
        self.whole = Share((), slice(0))  # of the batch that was drawn last, where `drawn` wants it
        self.tells_every = False
        self.every: Iterator = iter(())  # with `tells_every`: the batches of all ranks, for a second reader

    def __iter__(self) -> Iterator:
        self.noted = deque()
        batches = iter(self.batches)  # now, not at the first batch: a sampler of the user's may draw here
        if self.limit is not None:
            batches = itertools.islice(batches, self.limit)
        if self.skip is not None:
            batches = after(batches, self.skip)
        if self.tells_every:
            batches, self.every = itertools.tee(batches)
        if self.seeds is not None:
            self.seeds()
        return self._draw(batches, self.noted)

    def _draw(self, batches: Iterator, noted: deque[Part]) -> Iterator:
        if self.rule == "deal" and self.drawn is not None:
            return self._deal(batches, noted)
        return self._cut(batches, noted)

    def _deal(self, batches: Iterator, noted: deque[Part]) -> Iterator:
        """Every batch, for workers that load or pass over those of others."""
        for number, batch in enumerate(batches):
            own = number % self.world == self.rank
            noted.append(Part(batch if own and self.keeps_indices else None, len(batch) if own else 0, len(batch)))
            yield Share(batch, slice(len(batch) if own else 0))

    def _cut(self, batches: Iterator, noted: deque[Part]) -> Iterator:
        if self.drawn is not None:
            batches = map(self._noting_whole, batches)
        for part in parts(batches, self.rule, self.rank, self.world):
            noted.append(part if self.keeps_indices else part._replace(items=None))
            yield self.whole if isinstance(self.drawn, WorkerSamples) else part.items

    def _noting_whole(self, batch: Sequence) -> Sequence:
        self.whole = Share.of(batch, self.rank, self.world)
        if isinstance(self.drawn, DrawnSamples):
            self.drawn.batch, self.drawn.own = self.whole
        return batch


class IndexedLoader(DividedLoader):
    """A DataLoader of this rank's own over the same data set, which asks only for this rank's samples."""

    def __init__(
        self,
        loader: DataLoader,
        runtime: Runtime,
        train: bool,
        limit: int | None,
        moves: bool = True,
        alone: bool = True,
    ):
        super().__init__(loader, runtime, train, limit, moves)
        rank, world = runtime.rank, runtime.world_size
        ahead = not train
        most = limit if ahead else None
        shared = SharedBatches(loader.batch_sampler, runtime.group, rank, ahead, most, self.forget_stream)
        self.sampler_parts = _Parts(shared, self.rule, rank, world, limit)
        exact = self.rule == "slice" or (runtime.global_batch and alone)
        if exact and (samples := WorkerSamples.of(loader)) is not None:
            self.sampler_parts.drawn, self.sampler_parts.seeds = samples, self.share_seeds
        elif self.rule == "slice" and not loader.num_workers:
            self.sampler_parts.drawn = DrawnSamples(loader.dataset, loader.collate_fn, runtime)
        self.sampler_parts.tells_every = self.rule == "deal" and runtime.global_batch and not loader.num_workers
        apart = rank > 0 and (loader.generator is not None or self.sampler_parts.seeds is not None)
        generator = torch.Generator().manual_seed(rank_seed(rank)) if apart else None
        self.own = rebuilt(loader, self.sampler_parts, generator)

    def share_seeds(self) -> None:
        """The workers of every rank are about to begin as those of rank 0 do, which loads what one process would."""
        runtime, generator = self.runtime, self.own.generator or torch.default_generator
        state = broadcast_object(generator.get_state() if runtime.rank == 0 else None, runtime.group, runtime.rank)
        if runtime.rank:
            generator.set_state(state)

    @property
    def own_generator(self) -> torch.Generator | None:
        """What seeds this rank's workers, where it is not the user's generator."""
        return self.own.generator if self.own.generator is not self.loader.generator else None

    skip: Resume | None = None

    def without(self, resume: Resume) -> DividedLoader:
        rest = copy(self)
        if starts_workers(self.own):
            rest.skip = resume._replace(used=steps(resume.used, self.rule, self.part, self.parts))
            return rest
        rest.sampler_parts = copy(self.sampler_parts)
        rest.sampler_parts.skip = resume
        rest.own = rebuilt(self.own, rest.sampler_parts)
        return rest

    def pairs(self) -> Iterator[tuple[Part, Any]]:
        batches = iter(self.own)  # draws a seed for workers; among several loaders one may begin again at any step
        self.forget_stream(often=False)
        if self.sampler_parts.tells_every:
            return dealt(self, batches)
        noted = self.sampler_parts.noted
        pairs = ((noted.popleft(), batch) for batch in batches)
        if self.rule == "deal" and self.sampler_parts.drawn is not None:
            pairs = ((part, batch) for part, batch in pairs if part.count)
        return pairs if self.skip is None else after(pairs, self.skip)


def parts_of(source: Any) -> list[IndexedLoader]:
    """The loaders of this rank's own in what `divide_loader` gave, or several of it together."""
    return [part for part in loaders_of(source) if isinstance(part, IndexedLoader)]


def rebuilt(loader: DataLoader, batch_sampler: Any, generator: torch.Generator | None = None) -> DataLoader:
    """A DataLoader with the settings of `loader` and another batch sampler.

    `generator`: what seeds the workers of ranks other than 0, where the loader's own would not do.
    """
    settings: dict[str, Any] = {}
    if loader.num_workers > 0:
        settings.update(
            prefetch_factor=loader.prefetch_factor,
            persistent_workers=loader.persistent_workers,
            multiprocessing_context=loader.multiprocessing_context,
        )
    if loader.pin_memory_device:
        settings["pin_memory_device"] = loader.pin_memory_device
    drawn = getattr(batch_sampler, "drawn", None)
    return DataLoader(
        loader.dataset if drawn is None else drawn,
        batch_sampler=batch_sampler,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn if drawn is None else drawn.collate,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=drawn.begin if isinstance(drawn, WorkerSamples) else loader.worker_init_fn,
        generator=generator or loader.generator,
        **settings,
    )


class SentLoader(DividedLoader):
    """Rank 0 reads whole batches as one process would, and sends them; each rank keeps its part."""

    def pairs(self) -> Iterator[tuple[Part, Any]]:
        batches = self._sent()
        if self.rule == "slice":
            return (self._cut(batch) for batch in batches)
        if self.rule == "group":
            return self._grouped(batches)
        taken = itertools.islice(batches, self.part, None, self.parts)
        return (self._whole(batch) for batch in taken)

    skip: Resume | None = None

    def without(self, resume: Resume) -> DividedLoader:
        rest = copy(self)
        rest.skip = resume
        return rest

    def _sent(self) -> Iterator:
        """The source begins now, for rank 0."""
        return self._messages(itertools.islice(self.loader, self.limit) if self.runtime.rank == 0 else None)

    def _messages(self, source: Iterator | None) -> Iterator:
        rank, group = self.runtime.rank, self.runtime.group
        if self.skip is not None:
            source = after(source, self.skip) if source is not None else self.skip.then()
        while True:
            message = next(([batch] for batch in source), None) if source is not None else None
            message = broadcast_object(message, group, rank)
            if message is None:
                return
            self.forget_stream(often=True)
            yield message[0]

    def _cut(self, batch: Any) -> tuple[Part, Any]:
        total = batch_size_of(batch) or 1
        start, stop = bounds(total, self.part, self.parts)
        if start == stop:
            return Part(None, 0, total), slice_batch(batch, 0, 1)
        return Part(None, stop - start, total), slice_batch(batch, start, stop)

    def _whole(self, batch: Any) -> tuple[Part, Any]:
        size = batch_size_of(batch) or 1
        return Part(None, size, size), batch

    def _grouped(self, batches: Iterator) -> Iterator[tuple[Part, Any]]:
        """Rank r takes the r-th of each group; where the last group is too short, a rank borrows the first and
        counts 0.
        """
        rank, world = self.part, self.parts
        while group := list(itertools.islice(batches, world)):
            sizes = [batch_size_of(batch) or 1 for batch in group]
            if rank < len(group):
                yield Part(None, sizes[rank], sum(sizes)), group[rank]
            else:
                yield Part(None, 0, sum(sizes)), group[0]

"""Which samples a batch holds: their numbers in the data set, for those who write down what came of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from .loaders import IndexedLoader, is_indexed, rebuilt


class _Noting:
    """A batch sampler that remembers the batches that are on their way."""

    def __init__(self, sampler: Iterable):
        self.sampler = sampler
        self.noted: deque[list[int]] = deque()

    def __len__(self) -> int:
        return len(self.sampler)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator:
        noted: deque[list[int]] = deque()
        self.noted = noted
        batches = iter(self.sampler)
        return (noted.append(batch) or batch for batch in batches)  # type: ignore[func-returns-value]


class WithIndices:
    """A DataLoader that tells `indices`, the numbers of the current batch's samples."""

    def __init__(self, loader: Any):
        self.sampler = _Noting(loader.batch_sampler)
        self.own = rebuilt(loader, self.sampler)
        self.indices: list[int] | None = None

    def __len__(self) -> int:
        return len(self.own)

    def __iter__(self) -> Iterator:
        batches = iter(self.own)
        noted = self.sampler.noted
        for batch in batches:
            self.indices = noted.popleft()
            yield batch


def with_indices(loader: Any) -> Any:
    """`loader` with `indices`, where its samples have numbers."""
    return WithIndices(loader) if is_indexed(loader) else loader


def telling_indices(trainer: Any, source: Any, batches: Iterator) -> Iterator:
    """`batches`, which come from `source`; before each, `trainer.batch_indices` is set."""
    if isinstance(source, IndexedLoader):
        source.sampler_parts.keeps_indices = True
    for batch in batches:
        trainer.batch_indices = getattr(source, "indices", None)
        yield batch

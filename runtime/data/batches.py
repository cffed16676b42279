"""`Batches`: what a loop cuts from its data by hand, as something to go over, which processes divide like a DataLoader.

for x, y in Batches(X, Y, at=range(0, len(X), 32), size=32, order=torch.randperm(len(X))):
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any

import torch
from torch.utils.data import DataLoader


class Batches:
    """Of each of `data` the samples i to i + `size`, for each i of `at`; with `order`, those that it has there.

    data: tensors, arrays or lists, whose first dimension is the samples, as are `order`'s numbers. A batch is that part
    of it; of several, a tuple. Like a slice, the last batch may be smaller, or empty. Nothing is drawn, and `order`,
    where the processes have others, is that of rank 0.
    """

    def __init__(self, *data: Any, at: Iterable[int], size: int, order: Any = None):
        if not data:
            raise TypeError("Batches() has no data to cut: give it the tensors, as Batches(X, Y, at=..., size=...)")
        self.data, self.at, self.size, self.order = data, at, size, order

    def __len__(self) -> int:
        return len(self.at) if isinstance(self.at, Sized) else sum(1 for _ in self.at)

    def __iter__(self) -> Iterator[Any]:
        for start in self.at:
            rows = slice(start, start + self.size)
            yield self.cut(rows if self.order is None else self.order[rows])

    def cut(self, rows: Any) -> Any:
        """A batch of some samples: of a slice, or of their numbers."""
        by_place = self.order is None and not isinstance(rows, slice)
        every = tuple(_taken(one, rows, by_place) for one in self.data)
        return every[0] if len(every) == 1 else every

    __getitems__ = cut  # by it a DataLoader gets its batches whole

    def loader(self) -> DataLoader:
        """The same batches from a DataLoader, which draws nothing of the script's random numbers."""
        batches: Any = self  # no Dataset: it knows whole batches alone
        return DataLoader(batches, batch_sampler=Rows(self), collate_fn=_as_it_is, generator=torch.Generator())


class Rows:
    """The numbers of each batch's samples."""

    def __init__(self, batches: Batches):
        self.batches = batches

    @property
    def is_sequential(self) -> bool:
        """Whether every process has the same without being told."""
        return self.batches.order is None

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        order, size = self.batches.order, self.batches.size
        every = range(len(self.batches.data[0])) if order is None else getattr(order, "tolist", lambda: order)()
        for start in self.batches.at:
            yield list(every[start : start + size])


def _taken(one: Any, rows: Any, by_place: bool) -> Any:
    """`one[rows]`; `by_place`: rows are the numbers of a slice, which pandas counts by place and numbers by label."""
    if isinstance(one, torch.Tensor) and isinstance(rows, torch.Tensor):
        return one[rows.to(one.device)]
    if isinstance(one, (list, tuple)) and not isinstance(rows, slice):
        return [one[n] for n in rows]
    return one.iloc[rows] if by_place and hasattr(one, "iloc") else one[rows]


def _as_it_is(batch: Any) -> Any:
    return batch

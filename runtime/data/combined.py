"""Several loaders at once: a batch holds one batch of each, in the structure (list, dict) in which they were given."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from ..errors import unknown_name
from .move import length_of

MODES = ("max_size_cycle", "max_size", "min_size", "sequential")
BATCHES = (torch.Tensor, list, tuple, Mapping, str, bytes, int, float)  # what a list of batches holds, not loaders


class Joined:
    """`iterables`: a list, tuple or dict of loaders, nested in any way. What is iterated are batches.

    `max_size_cycle`: as long as the longest, the shorter ones begin again; `max_size`: None where one has ended;
    `min_size`: as long as the shortest; `sequential`: one after the other (evaluation).
    """

    def __init__(self, iterables: Any, mode: str = "min_size"):
        if mode not in MODES:
            raise unknown_name("mode of a CombinedLoader", mode, MODES)
        self.iterables, self.mode = iterables, mode
        self.batches_a_step = 1  # of the script's, where each loader is divided
        self.runtime: Any = None
        self.told = False

    @property
    def flattened(self) -> list[Any]:
        return list(leaves(self.iterables))

    def divided(self, divide: Callable[[Any], Any], runtime: Any, batches_a_step: int) -> Joined:
        """The same of divided loaders."""
        other = Joined(rebuilt(self.iterables, map(divide, self.flattened)), self.mode)
        other.batches_a_step, other.runtime = batches_a_step, runtime
        return other

    def __len__(self) -> int:
        return self.length([length_of(loader) for loader in self.flattened])

    def length(self, lengths: list[Any]) -> int:
        """Of an epoch, from those of the loaders. Raises TypeError where it is not known."""
        picks: dict[str, Callable] = {"min_size": min, "sequential": sum}
        length = picks.get(self.mode, max)(lengths)
        if length == float("inf"):
            raise TypeError("a loader without a length is among those combined")
        return int(length)

    def __iter__(self) -> Iterator:
        loaders = self.flattened
        if self.mode == "sequential":
            for loader in loaders:
                yield from loader
            return
        iterators = [iter(loader) for loader in loaders]
        ended = [False] * len(loaders)
        while True:
            batches, share = [], None
            for index, loader in enumerate(loaders):
                batch = next(iterators[index], _END) if not ended[index] or self.mode == "max_size_cycle" else None
                if batch is _END:
                    ended[index] = True
                    if self.mode == "min_size" or all(ended):
                        return
                    if self.mode == "max_size_cycle":
                        iterators[index] = iter(loader)
                        batch = next(iterators[index])
                    else:
                        batch = None
                batches.append(batch)
                if self.runtime is not None and batch is not None:
                    share = self.runtime.part if index == 0 else self._alike(share)
            if self.runtime is not None:
                self.runtime.part = share  # losses are weighted by the first loader's batches
            yield rebuilt(self.iterables, iter(batches))

    def _alike(self, first: tuple[int, int] | None) -> tuple[int, int] | None:
        """The share of the first loader's batch, which weighs the loss; told where others may have another."""
        part, parts = self.runtime.part, self.runtime.strategy.data_place()[1]
        sizes = [share[1] for share in (first, part) if share is not None]
        if len(set(sizes)) > 1 and any(size % parts for size in sizes) and not self.told:
            self.told = True
            self.runtime.print(
                f"a step has batches of {sizes[0]} and {sizes[1]} samples of several loaders: each process's parts of "
                "them are other fractions, and losses are weighted by the first; batches of one size are exact",
                file=sys.stderr,
            )
        return first


class CombinedLoader(Joined):
    """The script's own: what it iterates are (batch, number of the batch, number of the loader), as in Lightning."""

    def __iter__(self) -> Iterator:
        if self.mode == "sequential":
            for index, loader in enumerate(self.flattened):
                yield from ((batch, number, index) for number, batch in enumerate(loader))
        else:
            yield from ((batch, number, 0) for number, batch in enumerate(super().__iter__()))


_END = object()


def as_combined(loaders: Any, mode: str) -> Joined | None:
    """Several loaders as one, or None where there is one. Lightning's CombinedLoader is understood."""
    if type(loaders).__name__ == "CombinedLoader" and hasattr(loaders, "iterables"):
        return Joined(loaders.iterables, getattr(loaders, "_mode", None) or loaders.mode)
    if isinstance(loaders, Joined):
        return Joined(loaders.iterables, loaders.mode)
    if isinstance(loaders, Mapping) or (isinstance(loaders, (list, tuple)) and holds_loaders(loaders)):
        return Joined(loaders, mode)
    return None


def holds_loaders(items: Any) -> bool:
    """Loaders, and not batches?"""
    return bool(items) and all(
        holds_loaders(list(item.values()) if isinstance(item, Mapping) else item)
        if isinstance(item, (list, tuple, Mapping))
        else isinstance(item, Iterable) and not isinstance(item, BATCHES) and type(item).__module__ != "numpy"
        for item in items
    )


def loaders_of(loaders: Any) -> list[Any]:
    """All loaders in what was given for one."""
    combined = as_combined(loaders, "max_size_cycle")
    return combined.flattened if combined is not None else [] if loaders is None else [loaders]


def leaves(iterables: Any) -> Iterator[Any]:
    if isinstance(iterables, Mapping):
        for item in iterables.values():
            yield from leaves(item)
    elif isinstance(iterables, (list, tuple)):
        for item in iterables:
            yield from leaves(item)
    else:
        yield iterables


def rebuilt(structure: Any, items: Iterator[Any]) -> Any:
    """`structure` with other leaves."""
    if isinstance(structure, Mapping):
        return {key: rebuilt(value, items) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)):
        parts = [rebuilt(value, items) for value in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)
    return next(items)

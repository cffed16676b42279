"""Going on in the middle of an epoch: the batches that were used are drawn again, and not loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .advance import after
from .loaders import DividedLoader, PlacedLoader, is_indexed, rebuilt


class _After:
    """A batch sampler without its first batches."""

    def __init__(self, sampler: Iterable, used: int, then: Callable[[], None]):
        self.sampler, self.used, self.then = sampler, used, then

    def __iter__(self) -> Iterator:
        return after(iter(self.sampler), self.used, self.then)


def skipping(source: Any, used: int, then: Callable[[], None]) -> Iterable:
    """One epoch of a training loader (as `divide_loader` gave it), without the script's first `used` batches."""
    if isinstance(source, DividedLoader):
        return source.without(used, then)
    if isinstance(source, PlacedLoader):
        return type(source)(skipping(source.loader, used, then), source.runtime)
    if is_indexed(source):
        return rebuilt(source, _After(source.batch_sampler, used, then), None)
    return after(iter(source), used, then)

"""Going on in the middle of an epoch: the batches that were used are drawn again, and not loaded; but for those of
workers that started with the epoch, whose random numbers go on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .advance import Resume, after
from .loaders import DividedLoader, PlacedLoader, is_indexed, rebuilt, starts_workers


class _After:
    """A batch sampler without its first batches."""

    def __init__(self, sampler: Iterable, resume: Resume):
        self.sampler, self.resume = sampler, resume

    def __iter__(self) -> Iterator:
        return after(iter(self.sampler), self.resume)


def skipping(source: Any, resume: Resume) -> Iterable:
    """One epoch of a training loader (as `divide_loader` gave it), without the script's batches that are behind."""
    if isinstance(source, DividedLoader):
        return source.without(resume)
    if isinstance(source, PlacedLoader):
        return type(source)(skipping(source.loader, resume), source.runtime)
    if is_indexed(source) and not starts_workers(source):
        return rebuilt(source, _After(source.batch_sampler, resume))
    return after(iter(source), resume)

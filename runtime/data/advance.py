"""A stream of batches without its beginning."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Resume(NamedTuple):
    """`used`: how many of the script's batches are behind; what to do before they are drawn again, and after. `early`:
    what to do before one more is drawn, where one had been drawn ahead.
    """

    used: int
    before: Callable[[], None]
    then: Callable[[], None]
    early: Callable[[], None] | None = None


def after(batches: Iterator, resume: Resume) -> Iterator:
    """`batches` without those that are behind, which are drawn and dropped before anything else is."""
    resume.before()
    for _ in itertools.islice(batches, resume.used):
        pass
    ahead = []
    if resume.early is not None:
        resume.early()
        ahead = list(itertools.islice(batches, 1))
    resume.then()
    yield from ahead
    yield from batches

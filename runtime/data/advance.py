"""A stream of batches without its beginning."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Resume(NamedTuple):
    """`used`: how many of the script's batches are behind; what to do before they are drawn again, and after."""

    used: int
    before: Callable[[], None]
    then: Callable[[], None]


def after(batches: Iterator, resume: Resume) -> Iterator:
    """`batches` without those that are behind, which are drawn and dropped before anything else is."""
    resume.before()
    for _ in itertools.islice(batches, resume.used):
        pass
    resume.then()
    yield from batches

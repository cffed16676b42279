"""A stream of batches without its beginning."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator


def after(batches: Iterator, used: int, then: Callable[[], None]) -> Iterator:
    """`batches` without the first `used`; `then` is called when those are drawn and before anything else is."""
    for _ in itertools.islice(batches, used):
        pass
    then()
    yield from batches

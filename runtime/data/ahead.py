"""One batch ahead, so that the last one is known when it comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def looking_ahead(batches: Iterator[tuple[int, Any]], loop: Any) -> Iterator[tuple[int, Any]]:
    """The same batches; `loop.batches` is set when the last one is given."""
    held = next(batches, None)
    while held is not None:
        following = next(batches, None)
        if following is None:
            loop.batches = held[0] + 1
        yield held
        held = following

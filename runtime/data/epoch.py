"""An epoch of a loader: how many batches it has, and telling its samplers which one it is."""

from __future__ import annotations

import contextlib
from typing import Any


def known_length(source: Any, limit: int | None) -> int | None:
    """Batches of an epoch, at most `limit`; None where nobody knows."""
    try:
        length = len(source)
    except (TypeError, NotImplementedError):
        return limit
    return length if limit is None else min(length, limit)


def set_epoch(loader: Any, epoch: int) -> None:
    """Samplers that want to know the epoch are told; a batch sampler's own too."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    samplers = (getattr(loader, "sampler", None), batch_sampler, getattr(batch_sampler, "sampler", None))
    for sampler in {id(sampler): sampler for sampler in samplers}.values():
        if sampler is not None and hasattr(sampler, "set_epoch"):
            with contextlib.suppress(NotImplementedError):
                sampler.set_epoch(epoch)

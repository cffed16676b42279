"""`Trainer(overfit_batches=...)`: the same first batches in every epoch."""

from __future__ import annotations

from typing import Any

from torch.utils.data import BatchSampler, SequentialSampler

from .combined import CombinedLoader, as_combined, rebuilt
from .loaders import is_indexed
from .loaders import rebuilt as rebuilt_loader


def in_order(loaders: Any) -> Any:
    """The loaders (one, several, or None) without shuffling; one that torch's DataLoader does not index is kept."""
    combined = as_combined(loaders, "max_size_cycle")
    if combined is not None:
        every = rebuilt(combined.iterables, map(in_order, combined.flattened))
        return CombinedLoader(every, combined.mode) if isinstance(loaders, CombinedLoader) else every
    if loaders is None or not is_indexed(loaders) or type(loaders.batch_sampler) is not BatchSampler:
        return loaders
    sampler = SequentialSampler(loaders.dataset)
    return rebuilt_loader(loaders, BatchSampler(sampler, loaders.batch_size, loaders.drop_last))

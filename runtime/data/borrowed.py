"""A rank whose share of a batch is empty takes part with a sample that is another's, which it may not count."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ..collectives import map_leaves

if TYPE_CHECKING:
    from ..trainer import Trainer


def uncounted(run: Callable[..., Any], trainer: Trainer) -> Callable[..., Any]:
    """`run`, a training step: with a borrowed sample it leaves the module's `sample_sums` as they were."""
    module, runtime = trainer.module, trainer.runtime
    names = getattr(module, "sample_sums", ())
    if not names or runtime.world_size == 1 or trainer.whole:
        return run

    def run_counted(batch: Any, batch_idx: int) -> Any:
        if runtime.part is None or runtime.part[0]:
            return run(batch, batch_idx)
        before = {name: map_leaves(getattr(module, name), _copy) for name in names}
        outcome = run(batch, batch_idx)
        for name, value in before.items():
            setattr(module, name, value)
        return outcome

    return run_counted


def _copy(leaf: Any) -> Any:
    return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf

"""A rank whose share of a batch is empty takes part with a sample that is another's, which it may not count."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ..collectives import map_leaves

if TYPE_CHECKING:
    from ..trainer import Trainer


COUNTS = ("_update_count", "_computed")  # of a torchmetrics object, beside its states


def uncounted(run: Callable[..., Any], trainer: Trainer) -> Callable[..., Any]:
    """`run`, a training step: with a borrowed sample it leaves the module's `sample_sums`, and torchmetrics objects
    that are parts of it, as they were.
    """
    module, runtime = trainer.module, trainer.runtime
    assert module is not None
    metrics = [part for part in module.modules() if hasattr(part, "_reductions")]
    names = [(part, name) for part in metrics for name in (*part._reductions, *COUNTS)]  # type: ignore[misc]
    names += [(module, name) for name in module.sample_sums]
    if not names or runtime.world_size == 1 or trainer.whole:
        return run

    def run_counted(batch: Any, batch_idx: int) -> Any:
        if runtime.part is None or runtime.part[0]:
            return run(batch, batch_idx)
        before = [(part, name, map_leaves(getattr(part, name), _copy)) for part, name in names]
        outcome = run(batch, batch_idx)
        for part, name, value in before:
            setattr(part, name, value)
        return outcome

    return run_counted


def _copy(leaf: Any) -> Any:
    return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf

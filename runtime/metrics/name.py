"""A name that a module logs: where its values go, and what they are called there."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from .entry import Entry

EPOCH = "epoch"  # logged outside of the batches


class PerhapsLoss(NamedTuple):
    """A step's value on several ranks, where losses are sums over samples: whether it is one shows when the step is
    over.
    """

    own: float
    mean: float
    total: float
    losses: list[torch.Tensor]  # of the step, on this rank

    def settled(self) -> float:
        return self.total if self.own in [float(loss) for loss in self.losses] else self.mean


class Name:
    """A name's settings, decided when it is first logged, and its values."""

    __slots__ = (
        *("bar", "dtype", "entry", "everywhere", "key", "last", "logger", "metric"),
        *("on_epoch", "on_step", "options", "source", "step_key", "step_sync", "until_here"),
    )

    def __init__(self, key: str, on_step: bool, on_epoch: bool, bar: bool, logger: bool):
        self.key, self.on_step, self.on_epoch, self.bar, self.logger = key, on_step, on_epoch, bar, logger
        self.step_key = forked(key, "step") if on_step and on_epoch else key
        self.entry: Entry | None = None  # None for a metric object
        self.metric: Any = None
        self.until_here: Any = None  # the metric as it was when its loader was over, where there are several
        self.last: Any = None
        self.dtype: torch.dtype | None = None  # of a value that was a tensor
        self.step_sync = False
        self.everywhere = True  # False: logged on rank 0 only, as was asked
        self.source: Any = EPOCH
        self.options: tuple = ()  # as they were given; a reduction may be a function made anew at each call

    @property
    def epoch_key(self) -> str:
        return forked(self.key, "epoch") if self.on_step and self.on_epoch else self.key

    def step_value(self) -> Any:
        if self.metric is not None:
            return getattr(self.metric, "_forward_cache", None)
        return self.last.settled() if isinstance(self.last, PerhapsLoss) else self.last

    def step_tensor(self) -> torch.Tensor | None:
        value = self.step_value()
        if value is None or self.metric is not None:
            return value if value is None else torch.as_tensor(value)
        return torch.as_tensor(value, dtype=shown(self.dtype)).squeeze()


def shown(dtype: torch.dtype | None) -> torch.dtype:
    """As Lightning shows a value: float64 stays, a half is float32, what is no floating point number becomes one."""
    if dtype is None or not dtype.is_floating_point:
        return torch.get_default_dtype()
    return torch.promote_types(dtype, torch.float32)


def forked(key: str, word: str) -> str:
    """`loss_epoch`, and `loss_epoch/dataloader_idx_1`."""
    name, mark, index = key.partition("/dataloader_idx_")
    return f"{name}_{word}{mark}{index}"

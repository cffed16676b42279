"""What ranks tell each other of an epoch's values, and what it comes to."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import torch

from ..errors import RanksDiffer
from .name import EPOCH, Name


class State(NamedTuple):
    """What one rank has of one name; `reduce` is None for a function, which cannot travel."""

    total: tuple[Any, float]
    sync: bool
    reduce: str | None
    epoch_key: str
    source: Any
    everywhere: bool
    bar: bool
    logger: bool
    dtype: torch.dtype | None


class Report(NamedTuple):
    """What one rank tells the others at the end of an epoch."""

    states: dict[str, State]
    batches: Counter
    metrics: dict[str, tuple[str | None, bool, bool, str, Any]]


class Values(NamedTuple):
    """The values of an epoch: for callbacks (under both names, where there are two), loggers, and the progress bar."""

    callback: dict[str, Any]
    logged: dict[str, Any]
    bar: dict[str, Any]
    source: dict[str, Any]  # the loader that a value belongs to, or EPOCH


def state_of(known: Name) -> State:
    assert known.entry is not None
    reduce, sync = known.entry.reduce, known.entry.sync
    return State(
        known.entry.state(),
        sync,
        reduce if isinstance(reduce, str) else None,
        known.epoch_key,
        known.source,
        known.everywhere,
        known.bar,
        known.logger,
        known.dtype,
    )


def put(values: Values, key: str, epoch_key: str, value: torch.Tensor, bar: bool, logger: bool, source: Any) -> None:
    tensor = value.detach()
    values.callback[key] = values.callback[epoch_key] = tensor
    values.source[epoch_key] = source
    if logger:
        values.logged[epoch_key] = tensor
    if bar:
        values.bar[epoch_key] = float(tensor)


def all_states(every: list[Report]) -> dict[str, State]:
    """Names in the order of the first rank that has them; a rank without batches learns them here."""
    found: dict[str, State] = {}
    for report in every:
        for key, state in report.states.items():
            found.setdefault(key, state)
    return found


def check_names(every: list[Report]) -> None:
    """Ranks that had batches of the same loader must have logged the same names there."""
    for key, state in all_states(every).items():
        if not state.everywhere:
            continue
        busy = [rank for rank, report in enumerate(every) if state.source == EPOCH or report.batches.get(state.source)]
        having = [rank for rank in busy if key in every[rank].states]
        if len(having) < len(busy):
            lacking = [rank for rank in busy if rank not in having]
            raise RanksDiffer(f"{key!r} was logged on ranks {having} and not on ranks {lacking}; log it on all")

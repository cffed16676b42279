"""torchmetrics objects on several ranks: whose states come together also where ranks have had different numbers of
batches, as evaluation without padding gives them, and in the order of one process.

torchmetrics sends the items of a list one by one, each to all: a rank with fewer of them would miss the last ones.
"""

from __future__ import annotations

import sys
from functools import wraps
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import torch

from ..collectives import gather_objects, map_leaves, on_host

if TYPE_CHECKING:
    from ..handle import Runtime

_runtime: Runtime | None = None
_NOTHING = object()


def meet(runtime: Runtime) -> None:
    """From now on metrics that sync by torchmetrics' default do so among the ranks of `runtime`."""
    global _runtime
    if runtime.world_size == 1 or "torchmetrics" not in sys.modules:
        return
    metric: Any = sys.modules["torchmetrics"].Metric
    if _runtime is None:
        metric._sync_dist = _syncing(metric._sync_dist)
    _runtime = runtime


def _syncing(theirs: Any) -> Any:
    @wraps(theirs)
    def sync(metric: Any, dist_sync_fn: Any = None, process_group: Any = None) -> None:
        if metric.dist_sync_fn is None and process_group is None and metric.process_group is None:
            bring_together(metric, _runtime)  # type: ignore[arg-type]
        else:
            theirs(metric, dist_sync_fn, process_group)

    return sync


def bring_together(metric: Any, runtime: Runtime) -> None:
    """The metric's states of all ranks, reduced as it wants; all ranks call it."""
    own = on_host({name: getattr(metric, name) for name in metric._reductions})
    what = f"the state of {type(metric).__name__}"
    every = runtime.distinct(gather_objects(own, runtime.group, runtime.world_size, what))
    for name, reduce in metric._reductions.items():
        states = map_leaves([each[name] for each in every], lambda leaf: leaf.to(metric.device))
        joined: Any
        if all(isinstance(state, torch.Tensor) for state in states):
            joined = torch.stack(states)
        else:
            joined = in_turn([state if isinstance(state, list) else [state] for state in states])
        setattr(metric, name, joined if reduce is None or not len(joined) else reduce(joined))


def in_turn(lists: list[list[Any]]) -> list[Any]:
    """The first of each, the second of each, ...: the order of batches that went round among the ranks, or were cut."""
    rounds = zip_longest(*lists, fillvalue=_NOTHING)
    return [item for one_round in rounds for item in one_round if item is not _NOTHING]

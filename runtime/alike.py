"""Ranks start alike: what a script draws before its processes meet, without a seed, is the same on every rank.

An unseeded `random_split`, a shuffled list of files or a vocabulary made of a set would otherwise be another one on
each rank. Rank 0 keeps its random state, as one process would have it; the others take it over when they import the
runtime.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import secrets
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from . import environment
from .environment import PREFIX

LIMIT = timedelta(hours=1)  # for rank 0 to come where another rank is
DOWNLOADS = timedelta(days=1)  # and for what it does first
HASH_SEEDS = 2**32
_first: bytes | None = None  # this process's random state at its import of the runtime
_store: Any = None  # that of the job, once this process serves or has met it
_values: list[bytes] = []  # what `rank_zero_value` was given
kept: dict[str, bytes] = {}  # of the folders that this process asked for before it had peers, what came of it
_turns: Counter[str] = Counter()  # how often this process has come to a block that rank 0 does first
_in_turn: list[str] = []  # those that it is in


def on_import() -> None:
    """Take over rank 0's random state in a launched rank, keep this process's own for peers that it may start."""
    global _first
    if multiprocessing.parent_process() is not None:
        return  # a loader's worker, which has seeds of its own
    if environment.launched():
        if environment.place().world_size > 1:
            _take_over()
    elif "torch" in sys.modules:
        _first = _state()


def serve(state: bytes | None = None) -> dict[str, str]:
    """Serve a store on which the ranks of this machine find one random state; returns what tells them where it is.

    `state`: that of this process, where it becomes rank 0 itself.
    """
    global _store
    from torch.distributed import TCPStore

    _store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    if state is not None:
        _store.set(key(), state)
    return {PREFIX + "START": f"127.0.0.1:{_store.port}"}


def serve_peers() -> dict[str, str]:
    """`serve`, in a script that starts the other ranks of its own training."""
    if _first is None:
        return {}
    address = serve(_first)
    for number, value in enumerate(_values):
        _store.set(key("value", number), value)
    for asked, outcome in kept.items():
        _store.add(f"{asked}/asked", 1)
        _store.set(asked, outcome)
    return address


def rank_zero_value(value: Any) -> Any:
    """Rank 0's value on every rank, where each may have another: a path with the time in it, or a temporary one.

    All ranks call it, in one order; a rank waits until rank 0 has. Before the processes have met, too. Where ranks
    take turns (`rank_zero_first`), each has its own.
    """
    if in_turn():
        return value
    place = environment.place()
    _values.append(pickle.dumps(value))
    shared = store() if place.world_size > 1 else None
    if shared is None:
        return value
    own = key("value", len(_values) - 1)
    if place.rank == 0:
        shared.set(own, _values[-1])
        return value
    return pickle.loads(shared.get(own))


@contextlib.contextmanager
def rank_zero_first(when: Any = True, per_node: bool = False) -> Iterator[None]:
    """The block on rank 0, and on the others once rank 0 is through: `with rank_zero_first(): data = download()`.

    All ranks come to it, before the processes have met, too, and at once unless `when`; `per_node`: rank 0 of each
    node, for what it keeps on a disk of its own.
    """
    if not when:
        yield
        return
    place = environment.place()
    kind = f"first/{os.environ.get('GROUP_RANK', os.environ.get('NODE_RANK', 0))}" if per_node else "first"
    _turns[kind] += 1
    own, first = key(kind, _turns[kind]), (place.local_rank if per_node else place.rank) == 0
    shared = store() if place.world_size > 1 else None
    if not first:
        _wait(shared, own)
    _in_turn.append(own)
    try:
        yield
    finally:
        _in_turn.pop()
    if place.world_size == 1:
        kept[own] = b"through"
    elif first:
        _let_go(shared, own)


def all_have_come() -> None:
    """None goes on before all ranks have called it, before the processes have met, too."""
    if in_turn():
        return
    world = environment.place().world_size
    _turns["come"] += 1
    own = key("come", _turns["come"])
    shared = store() if world > 1 else None
    if world == 1:
        kept[own] = b"all"  # for peers that this process may start
    elif shared is None:
        _meet()
    else:
        if shared.add(f"{own}/count", 1) == world:
            shared.set(own, b"all")
        shared.wait([own], LIMIT)


def in_turn() -> bool:
    """Whether this rank may wait for no other: in a block that rank 0 does first, and in a loader's worker."""
    return bool(_in_turn) or in_worker()


def in_worker() -> bool:
    """Whether this process is a worker of a rank's DataLoader, which has samples of its own."""
    loading = sys.modules.get("torch.utils.data")
    return loading is not None and loading.get_worker_info() is not None


def _wait(shared: Any, turn: str) -> None:
    """Until rank 0 is through; where it fails its launcher ends all."""
    if shared is not None:
        shared.wait([turn], DOWNLOADS)
    else:
        _meet()


def _let_go(shared: Any, turn: str) -> None:
    if shared is not None:
        shared.set(turn, b"through")
    else:
        _meet()


def _meet() -> None:
    """Where the launcher has no store, processes can meet once they are connected."""
    import torch

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()


def hash_seed(shared: str | None = None) -> str:
    """PYTHONHASHSEED for all ranks, so that sets of strings have one order; from `shared`, where nodes share a name."""
    return str(zlib.crc32(shared.encode()) if shared else secrets.randbelow(HASH_SEEDS))


def _take_over() -> None:
    from .checkpoint import randomness

    mine, shared = _state(), store()
    if shared is None:
        return
    if environment.place().rank == 0:
        shared.set(key(), mine)
    else:
        randomness.restore(pickle.loads(shared.get(key())))


def store() -> Any:
    """The store of this job; None where its launcher has none."""
    global _store
    address = environment.option("start") or _agents_store()
    if _store is None and address is not None:
        from torch.distributed import TCPStore

        host, _, port = address.rpartition(":")
        _store = TCPStore(host, int(port), is_master=False, timeout=LIMIT)
    return _store


def _agents_store() -> str | None:
    """The store of torch's agent, which it keeps for all nodes' ranks unless it was told not to."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    return f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"


def key(kind: str = "start", number: int = 0) -> str:
    return f"ptmigrate/{kind}/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}/{number}"


def _state() -> bytes:
    from .checkpoint import randomness

    with contextlib.suppress(ImportError):
        import numpy  # noqa: F401  a script that imports it later finds it in this state
    return pickle.dumps(randomness.capture())

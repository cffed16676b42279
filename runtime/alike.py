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
from datetime import timedelta
from typing import Any

from . import environment
from .environment import PREFIX

LIMIT = timedelta(minutes=5)  # for rank 0 to come to its import of the runtime
HASH_SEEDS = 2**32
_first: bytes | None = None  # this process's random state at its import of the runtime
_store: Any = None  # held here while this process serves it


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
        _store.set(_key(), state)
    return {PREFIX + "START": f"127.0.0.1:{_store.port}"}


def serve_peers() -> dict[str, str]:
    """`serve`, in a script that starts the other ranks of its own training."""
    return serve(_first) if _first is not None else {}


def hash_seed(shared: str | None = None) -> str:
    """PYTHONHASHSEED for all ranks, so that sets of strings have one order; from `shared`, where nodes share a name."""
    return str(zlib.crc32(shared.encode()) if shared else secrets.randbelow(HASH_SEEDS))


def _take_over() -> None:
    address = environment.option("start") or _agents_store()
    if address is None:
        return
    from torch.distributed import TCPStore

    from .checkpoint import randomness

    mine = _state()
    host, _, port = address.rpartition(":")
    store: Any = TCPStore(host, int(port), is_master=False, timeout=LIMIT)
    if environment.place().rank == 0:
        store.set(_key(), mine)
    else:
        randomness.restore(pickle.loads(store.get(_key())))


def _agents_store() -> str | None:
    """The store of torch's agent, which it keeps for all nodes' ranks unless it was told not to."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    return f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"


def _key() -> str:
    return f"ptmigrate/start/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}"


def _state() -> bytes:
    from .checkpoint import randomness

    with contextlib.suppress(ImportError):
        import numpy  # noqa: F401  a script that imports it later finds it in this state
    return pickle.dumps(randomness.capture())

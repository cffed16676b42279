"""Steps that need whole batches: a state carried from batch to batch, an index for a batch.

Every process then computes every batch whole and draws the same random numbers, so that the run is that of one process.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader

from .checkpoint import randomness
from .errors import ConfigurationError, unknown_name
from .kept import adopt_random_state
from .seeding import keep_streams, separate_ranks

OVER_PROCESSES = "processes"  # as a rule of division: not over the devices of one process, which dp and ddp2 would do

if TYPE_CHECKING:
    from .handle import Runtime
    from .module import Module


def is_whole(module: Module, loader: Any, runtime: Runtime) -> bool:
    """Does `module` take the batches of this training loader whole? Raises ConfigurationError for an unknown rule.

    All ranks do where one has to: rank 0 alone may have a bar around its loader.
    """
    rule = module.divide_batches
    if isinstance(rule, str) and rule != OVER_PROCESSES:
        if rule != "loaders":
            raise unknown_name("divide_batches", rule, ("loaders", OVER_PROCESSES))
        own = not isinstance(loader, DataLoader)
        return own if runtime.world_size == 1 else runtime.reduce_alike(int(own)) > 0
    return not rule


def runs_once(module: Module) -> bool:
    """Does the training step run once in a process, on whatever many devices: "processes", or whole batches?"""
    return module.divide_batches in (False, OVER_PROCESSES)


def draw_alike(runtime: Runtime, whole: bool) -> None:
    """Random streams for a fit: rank 0's on every rank where batches are whole, else one of its own for each rank."""
    if runtime.world_size == 1:
        return
    if whole:
        if not runtime.strategy.draws_alike:
            says = f"divide_batches is off: strategy {runtime.strategy.name!r} cannot compute whole batches alike"
            raise ConfigurationError(f"{says}; use 'ddp'")
        adopt_random_state(runtime)
    else:
        separate_ranks(runtime.rank)


def tell_draws_apart(runtime: Runtime) -> bool:
    """Whether ranks that compute the same batches have drawn unlike in them; that is said, for it is another run."""
    if runtime.world_size == 1:
        return False
    state = randomness.capture()
    marks = {kind: zlib.crc32(repr(_plain(state.get(kind))).encode()) for kind in randomness.KINDS}
    most, least = runtime.reduce_alike([marks, {kind: -mark for kind, mark in marks.items()}], "max")
    apart = [kind for kind in marks if most[kind] != -least[kind]]
    if apart:
        says = f"a step or a hook at a batch has drawn other numbers from {' and '.join(apart)} on some processes"
        says = f"random numbers are not those of one process: {says} than on others, as a call on rank 0 alone does"
        runtime.print(f"{says}; draw them on every process", file=sys.stderr)
    return bool(apart)


def _plain(state: Any) -> Any:
    return state.tolist() if isinstance(state, torch.Tensor) else state


def draw_alike_again(runtime: Runtime) -> None:
    """After a fit: what the script draws next, to split data or to choose some, is one thing on every rank."""
    if runtime.world_size > 1 and runtime.strategy.draws_alike:
        keep_streams(runtime.rank)
        adopt_random_state(runtime)


@contextmanager
def rank_zeros_draws(runtime: Runtime, whole: bool) -> Iterator[None]:
    """What a module draws outside of the batches, rank 0 draws for all: the samples of an epoch, the loader that it
    makes, the order of an evaluation at the epoch's end.

    Ranks with other samples would train on other data than one process; ranks that evaluate in other orders would take
    other values for the metric that a schedule or a stop asks for.
    """
    if runtime.world_size == 1 or whole or not runtime.strategy.draws_alike:
        yield
        return
    own = randomness.capture()
    adopt_random_state(runtime)
    yield
    if runtime.rank != 0:
        randomness.restore(own)

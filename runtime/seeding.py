"""Seeds. Rank 0 keeps the user's random state untouched; the other ranks get streams of their own.

What is drawn on rank 0 is therefore what one process draws, and dropout or augmentation differs from rank to rank. With
the global batch kept, draws/ has every rank draw from rank 0's stream within a step, and keep the rows of its samples.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import torch

from .accelerators.tpu import running

_STEP = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio: neighbouring ranks get seeds far apart
_SEED_RANGE = 2**63 - 1
_separated = False
_own: list[dict[str, Any]] = []  # this rank's streams, while it draws what rank 0 does


def rank_seed(rank: int) -> int:
    """A seed for `rank`, from the seed that the default generator was last given."""
    return (torch.initial_seed() + rank * _STEP) % _SEED_RANGE


def separate_ranks(rank: int) -> None:
    """Give this rank streams of its own, those that it had before where it had some; rank 0 is left as it is."""
    global _separated
    if rank != 0 and _own:
        from .checkpoint.randomness import restore

        restore(_own.pop())
    if rank == 0 or _separated:
        return
    _separated = True
    seed_generators(rank_seed(rank))


def keep_streams(rank: int) -> None:
    """Keep this rank's streams for the next run: until then it draws what rank 0 draws."""
    from .checkpoint.randomness import capture

    if rank != 0 and _separated:
        _own[:] = [capture()]


def seed_generators(seed: int) -> None:
    """Seed torch (with an XLA device's own generator), random and (when it is loaded) NumPy."""
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
    xla = running()
    if xla is not None:
        xla.seed(seed)


def seed_everything(seed: int, workers: bool = False, verbose: bool = True) -> int:
    """Lightning's name: seed torch, random and NumPy alike on every rank."""
    import numpy  # noqa: F401  so that seed_generators finds it

    seed_generators(seed)
    return seed

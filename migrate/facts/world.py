"""A process as one of several, and what is known of a value there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class World:
    """One of those below, each equal to itself alone: what is known of a node there is looked up often."""

    rank: int
    size: int
    launched: bool
    on_node: int  # its rank among the processes of its machine


PLAIN = World(0, 1, False, 0)
PEERS = (World(0, 4, True, 0), World(1, 4, True, 1), World(2, 4, True, 2))
NEXT_NODE = World(4, 8, True, 0)  # the first process of another machine


@dataclass(frozen=True)
class Known:
    """A value, and whether it was learned from a question about processes; no constant of the script's own is."""

    value: Any
    asked: bool


DEAD = object()  # a value that is given where a process does not come

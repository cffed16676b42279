"""Sampler classes of a script's own that read which process this is, and of how many."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import pairwise

from .nodes import walk

WORLDS = {"num_replicas", "world_size", "get_world_size", "num_processes"}
RANKS = {"rank", "get_rank", "local_rank", "process_index"}
ASKS = {"get_world_size", "get_rank"}


def own_samplers(classes: Iterable[ast.ClassDef]) -> Iterator[ast.ClassDef]:
    """Classes derived from DistributedSampler, or named or derived as samplers and reading a rank and a world."""
    for c in classes:
        bases = [b.attr if isinstance(b, ast.Attribute) else getattr(b, "id", "") for b in c.bases]
        if not any(name.endswith("Sampler") for name in (c.name, *bases)):
            continue
        if "DistributedSampler" in bases:
            if not any(_says_one(n) for n in walk(c, ast.Call)):
                yield c
            continue
        nodes = walk(c)
        read = {n.attr for n in nodes if isinstance(n, ast.Attribute)} | {
            n.id for n in nodes if isinstance(n, ast.Name)
        }
        if read & WORLDS and read & RANKS and (read & ASKS or not _is_one(nodes)):
            yield c


def _is_one(nodes: list[ast.AST]) -> bool:
    """`if num_replicas is None: num_replicas = 1`, `rank = 0`: one process, where nobody says otherwise."""
    given = [
        (getattr(s.targets[0], "attr", getattr(s.targets[0], "id", "")), s.value.value)
        for s in nodes
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Constant)
    ]
    return any(n in WORLDS and v == 1 for n, v in given) and any(n in RANKS and v == 0 for n, v in given)


def is_of_one(call: ast.Call) -> bool:
    """Whether a sampler is made to draw every sample: `num_replicas=1, rank=0`."""
    said = {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}
    return (said.get("num_replicas"), said.get("rank")) == (1, 0)


def _says_one(call: ast.Call) -> bool:
    """Whether a class tells its base that there is one process: `super().__init__(data, 1, 0)`."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "__init__"):
        return False
    placed = [getattr(a, "value", None) for a in call.args]
    return is_of_one(call) or (1, 0) in pairwise(placed)

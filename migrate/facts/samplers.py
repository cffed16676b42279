"""Sampler classes of a script's own that give each process its part of the data."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from .nodes import walk

WORLDS = {"num_replicas", "world_size", "get_world_size", "num_processes"}
RANKS = {"rank", "get_rank", "local_rank", "process_index"}


def own_samplers(classes: Iterable[ast.ClassDef]) -> Iterator[ast.ClassDef]:
    """Classes named or derived as samplers that read both a rank and a number of processes."""
    for c in classes:
        bases = [b.attr if isinstance(b, ast.Attribute) else getattr(b, "id", "") for b in c.bases]
        if not any(name.endswith("Sampler") for name in (c.name, *bases)):
            continue
        nodes = walk(c)
        read = {n.attr for n in nodes if isinstance(n, ast.Attribute)} | {
            n.id for n in nodes if isinstance(n, ast.Name)
        }
        if read & WORLDS and read & RANKS:
            yield c

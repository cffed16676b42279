"""Sampler classes of a script's own that give each process its part of the data."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from .nodes import walk

WORLDS = {"num_replicas", "world_size", "get_world_size", "num_processes"}
RANKS = {"rank", "get_rank", "local_rank", "process_index"}
# of packages, and of other files of a project: `DistributedSamplerWrapper`, `OrderedDistributedSampler`
OF_PACKAGES = re.compile(r"dist(ributed)?\w*sampler|^RASampler$|^RepeatAugSampler$", re.IGNORECASE)


def dividing(
    classes: list[ast.ClassDef], calls: list[ast.Call], resolve: Callable[[ast.expr], str | None]
) -> Iterator[tuple[ast.Call, str]]:
    """The calls, with their names, of samplers other than torch's own that give each process its part."""
    own, named = {c.name for c in own_samplers(classes)}, {c.name for c in classes}
    for call in calls:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in named:
            divides = name in own and isinstance(call.func, ast.Name)
        else:
            divides = OF_PACKAGES.search(name) is not None and name[:1].isupper()
            full = resolve(call.func) or ("" if name != "DistributedSampler" else "torch.utils.data.")  # a parameter
            divides = divides and not full.startswith("torch.utils.data.")
        if divides and not is_of_one(call):
            yield call, name


def own_samplers(classes: Iterable[ast.ClassDef]) -> Iterator[ast.ClassDef]:
    """Classes derived from DistributedSampler, or named or derived as samplers and reading a rank and a world."""
    for c in classes:
        bases = [b.attr if isinstance(b, ast.Attribute) else getattr(b, "id", "") for b in c.bases]
        if not any(name.endswith("Sampler") for name in (c.name, *bases)):
            continue
        if "DistributedSampler" in bases:
            if not any(isinstance(n, ast.Call) and _says_one(n) for n in walk(c)):
                yield c
            continue
        nodes = walk(c)
        read = {n.attr for n in nodes if isinstance(n, ast.Attribute)} | {
            n.id for n in nodes if isinstance(n, ast.Name)
        }
        if read & WORLDS and read & RANKS:
            yield c


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

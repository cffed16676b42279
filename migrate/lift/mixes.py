"""Whether a training step mixes the samples of its batch: a process with a part of it then computes something else."""

from __future__ import annotations

import ast
from dataclasses import replace

from ..facts.mixing import BATCH, Value
from ..facts.script import Facts
from .recipe import CannotLift, DataPass


def mixes_samples(facts: Facts, train: DataPass) -> CannotLift | None:
    """Why the step needs whole batches: the first operation that mixes samples, in the step or in what it calls."""
    given: dict[str, Value] = {}
    if isinstance(train.target, ast.Name):
        given[train.target.id] = replace(BATCH, holds=True)
    else:
        given.update({n.id: BATCH for n in ast.walk(train.target) if isinstance(n, ast.Name)})
    flow = facts.mixing.flow(train.loop, given, None)  # type: ignore[arg-type]  # only its body is followed
    if not flow.mixes:
        return None
    node = flow.mixes[0]
    return CannotLift(node, f"`{facts.short(node)}` mixes the samples of a batch")

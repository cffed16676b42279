"""Loops over batches that stay in the script: the Trainer placed the model, so their batches go to its device too."""

from __future__ import annotations

import ast

from ..facts.loops import EVALUATES
from ..facts.script import Facts
from ..report import Edit
from .loaders import batch_source
from .recipe import CannotLift
from .shape.edits import Edits

CODE = "PTM700"
NAME = "on_device"


def place_batches(facts: Facts, edits: Edits) -> list[Edit]:
    """`for x, y in on_device(loader):` in the evaluations that no Trainer runs."""
    said = []
    for loop, kind in facts.loops.hot_loops.items():
        if kind != EVALUATES or not isinstance(loop, ast.For):
            continue
        try:
            source, *_ = batch_source(facts, loop)
        except CannotLift:
            continue
        if _counts(source) or facts.in_formatted_string(source):
            continue
        start, stop = facts.text.span(source)
        edits.replace(start, start, f"{NAME}(")
        edits.replace(stop, stop, ")")
        line, column, _, _ = facts.text.key(loop)
        says = f"`{facts.short(source)}`: its batches go where the Trainer placed the model"
        said.append(Edit(line, column + 1, CODE, says))
    return said


def _counts(source: ast.expr) -> bool:
    """`range(n)`: what it gives is drawn from something else."""
    return isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "range"

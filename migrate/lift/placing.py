"""Loops over batches that stay in the script: the Trainer placed the model, so their batches go to its device too."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from ..codemods.base import Change
from ..facts.loops import EVALUATES
from ..facts.nodes import walk
from ..facts.script import Facts
from ..report import Edit
from .loaders import batch_source
from .recipe import CannotLift
from .shape.edits import Edits

CODE, MOVES = "PTM700", "PTM101"
NAME = "on_device"


def place_batches(facts: Facts, edits: Edits, moved: Callable[[ast.For], bool]) -> list[Edit]:
    """`for x, y in on_device(loader):` in the evaluations that no Trainer runs, and where the loop `moved` batches."""
    said = []
    for loop in facts.walk(ast.For):
        over_loader = facts.loops.is_loader(loop.iter)
        if facts.loops.hot_loops.get(loop) != EVALUATES and not (over_loader and moved(loop)):
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


def draws_batches(facts: Facts) -> bool:
    """Whether a file goes over a loader, or evaluates what it is given."""
    loops = facts.walk(ast.For)
    return any(facts.loops.is_loader(f.iter) or facts.loops.hot_loops.get(f) == EVALUATES for f in loops)


def moving_loops(facts: Facts, changes: Iterable[Change]) -> set[int]:
    """The lines of the loops over loaders that moved what they draw, until a codemod took the calls away."""
    found: set[int] = set()
    for change in changes:
        if change.edit.code != MOVES or not change.told:
            continue
        read = {n.id for n in walk(change.node) if isinstance(n, ast.Name)}
        for up in facts.scopes.ancestors(change.node):
            if isinstance(up, ast.For) and facts.loops.is_loader(up.iter):
                drawn = {n.id for s in (up.target, *up.body) for n in walk(s) if isinstance(n, ast.Name) and _is_set(n)}
                found |= {up.lineno} if read & drawn else set()
    return found


def _is_set(n: ast.Name) -> bool:
    return isinstance(n.ctx, ast.Store)


def _counts(source: ast.expr) -> bool:
    """`range(n)`: what it gives is drawn from something else."""
    return isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "range"

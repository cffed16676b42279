"""What a step does next by the values of its batch: ranks with shares of it would not all do the same."""

from __future__ import annotations

import ast

from ..facts.batch_tests import asks_values
from ..facts.nodes import walk
from ..facts.script import Facts
from .nodes import is_call_of, walk_here
from .recipe import CannotLift, DataPass
from .shown import of_the_batch


def check_decisions(facts: Facts, train: DataPass) -> None:
    """Raise for a test of the batch's values that leaves the batches, skips one, or decides about a backward pass."""
    part = of_the_batch(train, set(), {})
    for n in (n for s in train.body for n in walk_here(s)):
        if not isinstance(n, ast.If) or not asks_values(n.test, part):
            continue
        loop = next(up for up in facts.scopes.ancestors(n) if isinstance(up, (ast.For, ast.While)))
        if any(_goes_elsewhere(s, loop is train.loop) for s in (*n.body, *n.orelse)):
            raise CannotLift(n, f"`if {facts.short(n.test)}:` decides by the values of the batch what the step does")


def _goes_elsewhere(s: ast.stmt, leaves: bool) -> bool:
    """Whether a statement makes a backward pass, or a step; `leaves`: where a `break` in it leaves the batches."""
    if any(is_call_of(n, "backward") or is_call_of(n, "step") for n in walk(s, ast.Call)):
        return True
    stack: list[ast.AST] = [s]
    while stack:
        n = stack.pop()
        if isinstance(n, ast.Return) or (leaves and isinstance(n, (ast.Break, ast.Continue))):
            return True
        if not isinstance(n, (ast.For, ast.While, ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            stack += ast.iter_child_nodes(n)
    return False

"""What a step does next by the values of its batch: ranks with shares of it would not all do the same."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from .nodes import is_call_of, walk_here
from .recipe import CannotLift, DataPass
from .shown import of_the_batch

OF_ALL = ("dtype", "device", "ndim", "dim", "requires_grad", "training", "is_cuda")  # the same of every share
ASKS_KIND = ("isinstance", "hasattr", "callable", "type")


def check_decisions(facts: Facts, train: DataPass) -> None:
    """Raise for a test of the batch's values that leaves the batches, skips one, or decides about a backward pass."""
    part = of_the_batch(train, set(), {})
    for n in (n for s in train.body for n in walk_here(s)):
        if not isinstance(n, ast.If) or not asks(n.test, part):
            continue
        loop = next(up for up in facts.scopes.ancestors(n) if isinstance(up, (ast.For, ast.While)))
        if any(_goes_elsewhere(s, loop is train.loop) for s in (*n.body, *n.orelse)):
            raise CannotLift(n, f"`if {facts.short(n.test)}:` decides by the values of the batch what the step does")


def asks(test: ast.AST, part: set[str]) -> bool:
    """Whether a test asks for more of the batch than what every share of it has alike."""
    if isinstance(test, ast.Name):
        return test.id in part
    if isinstance(test, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops):
        return False
    if isinstance(test, ast.Attribute) and test.attr in OF_ALL:
        return False
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id in ASKS_KIND:
        return False
    if isinstance(test, ast.Subscript) and isinstance(test.value, ast.Attribute) and test.value.attr == "shape":
        first = test.slice
        return not (isinstance(first, ast.Constant) and first.value != 0) and asks(test.value.value, part)
    match test:
        case ast.Call(func=ast.Attribute(value=of, attr="size"), args=[ast.Constant(value=dimension), *_]):
            return dimension == 0 and asks(of, part)
    return any(asks(child, part) for child in ast.iter_child_nodes(test))


def _goes_elsewhere(s: ast.stmt, leaves: bool) -> bool:
    """Whether a statement makes a backward pass, or a step; `leaves`: where a `break` in it leaves the batches."""
    if any(is_call_of(n, "backward") or is_call_of(n, "step") for n in walk(s)):
        return True
    stack: list[ast.AST] = [s]
    while stack:
        n = stack.pop()
        if isinstance(n, ast.Return) or (leaves and isinstance(n, (ast.Break, ast.Continue))):
            return True
        if not isinstance(n, (ast.For, ast.While, ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            stack += ast.iter_child_nodes(n)
    return False

"""Manual optimization: the batch loop's body stays in its order, with several optimizers, closures and conditions."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from .nodes import walk_here
from .optimizers import is_optimizer
from .recipe import CannotLift, DataPass, Optimization

BACKWARD_OPTIONS = {"retain_graph", "create_graph", "inputs"}


def manual_optimization(facts: Facts, train: DataPass, backwards: list[ast.Call], why: CannotLift) -> Optimization:
    """The optimizers and losses of a body that is kept; CannotLift where a loss or an optimizer is not shown."""
    optimizers: dict[str, None] = {}
    for s in train.body:
        for n in walk(s):
            name = _stepped(n)
            if name is not None and is_optimizer(facts, n, name):
                optimizers[name] = None
    losses = []
    for call in backwards:
        assert isinstance(call.func, ast.Attribute)
        if call.args or any(k.arg not in BACKWARD_OPTIONS for k in call.keywords):
            raise CannotLift(call, "backward() is given a gradient")
        losses.append(call.func.value)
    for s in train.body:
        for n in () if isinstance(s, ast.FunctionDef) else walk_here(s):
            if isinstance(n, ast.Return | ast.Yield | ast.YieldFrom):
                raise CannotLift(n, "the batch loop is left early")
    return Optimization(losses, list(optimizers), manual=True, why=why)


def _stepped(n: ast.AST) -> str | None:
    """The name stepped in `optimizer.step(...)` or `scaler.step(optimizer)`, or zeroed in `optimizer.zero_grad()`."""
    if not (isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in ("step", "zero_grad")):
        return None
    if (
        n.func.attr == "step"
        and n.args
        and isinstance(n.args[0], ast.Name)
        and "scaler" in ast.unparse(n.func.value).lower()
    ):
        return n.args[0].id
    return n.func.value.id if isinstance(n.func.value, ast.Name) else None

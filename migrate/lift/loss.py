"""Whether a loss is a mean or a sum over the samples of its batch: a sum is added over ranks, a mean is weighted."""

from __future__ import annotations

import ast
import re

from ..facts.nodes import walk
from ..facts.script import Facts
from .nodes import local_function, walk_here
from .recipe import CannotLift, Recipe

LOSS = re.compile(r"torch\.nn\.(.*\.)?\w+Loss")


def loss_reduction(facts: Facts, recipe: Recipe) -> str:
    """ "mean" or "sum"; CannotLift when the loss adds a sum to a mean."""
    losses = recipe.optimization.losses
    kinds = {reduction_of(facts, loss, recipe.train.body) or "mean" for loss in losses}
    if len(kinds) > 1:
        raise CannotLift(losses[1], "some losses are sums over the batch, others means")
    return kinds.pop()


def reduction_of(facts: Facts, node: ast.expr, body: list[ast.stmt], depth: int = 0) -> str | None:
    """The reduction of an expression read in a block; None for what has none (a constant, a penalty on weights)."""
    if depth > 12:
        return None
    if isinstance(node, ast.Name):
        return _of_name(facts, node, body, depth)
    if isinstance(node, ast.BinOp):
        return _of_operation(facts, node, body, depth)
    if isinstance(node, ast.UnaryOp):
        return reduction_of(facts, node.operand, body, depth + 1)
    if isinstance(node, ast.Call):
        return _of_call(facts, node, body, depth)
    return None


def _of_name(facts: Facts, node: ast.Name, body: list[ast.stmt], depth: int) -> str | None:
    found = None
    for s in body:
        for n in walk_here(s):
            if isinstance(n, ast.Assign | ast.AugAssign) and n.lineno <= node.lineno:
                targets = n.targets if isinstance(n, ast.Assign) else [n.target]
                if any(isinstance(t, ast.Name) and t.id == node.id for t in targets) and n.value is not node:
                    if any(x is node for x in walk(n)):
                        continue
                    found = reduction_of(facts, n.value, body, depth + 1) or found
    return found


def _of_operation(facts: Facts, node: ast.BinOp, body: list[ast.stmt], depth: int) -> str | None:
    left = reduction_of(facts, node.left, body, depth + 1)
    right = reduction_of(facts, node.right, body, depth + 1)
    if isinstance(node.op, ast.Div) and left == "sum" and _counts_samples(node.right):
        return "mean"
    if isinstance(node.op, ast.Mult):
        return left or right
    if isinstance(node.op, ast.Add | ast.Sub) and {left, right} == {"mean", "sum"}:
        raise CannotLift(node, f"`{facts.short(node)}` adds a sum over the batch to a mean")
    return left or right


def _counts_samples(node: ast.expr) -> bool:
    return any(
        (isinstance(n, ast.Attribute) and n.attr in ("size", "shape", "batch_size"))
        or (isinstance(n, ast.Name) and (n.id == "len" or "batch" in n.id.lower() or n.id in ("N", "n", "bs")))
        for n in walk(node)
    )


def _of_call(facts: Facts, call: ast.Call, body: list[ast.stmt], depth: int) -> str | None:
    asked = _asked(call)
    if asked is not None:
        return asked
    full = facts.names.resolve(call.func)
    last = (full or (call.func.attr if isinstance(call.func, ast.Attribute) else "")).split(".")[-1]
    if last == "sum" and not call.keywords and len(call.args) == (1 if full else 0):
        inner = call.args[0] if full else call.func.value  # type: ignore[attr-defined]
        return None if _of_parameters(inner) else "sum"
    if last == "mean":
        return "mean"
    if full is not None and full.startswith("torch.nn.functional."):
        return "mean"
    if isinstance(call.func, ast.Name):
        f = local_function(facts, call.func)
        if f is not None:
            kinds = {
                reduction_of(facts, n.value, f.body, depth + 1)
                for n in walk_here(f)
                if isinstance(n, ast.Return) and n.value is not None
            }
            return kinds.pop() if len(kinds) == 1 else None
        return _of_criterion(facts, call.func)
    return None


def _of_parameters(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in ("parameters", "weight", "bias") for n in walk(node))


def _of_criterion(facts: Facts, name: ast.Name) -> str | None:
    """`criterion = nn.MSELoss(reduction="sum")`, in whatever scope the name is bound."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    if scope is None:
        return None
    values = facts.devices.assigned(name.id, scope) or []
    values = [*values, *(facts.devices.given(scope, name.id) or [])] if name.id in scope.params else values
    kinds = set()
    for v in values:
        if isinstance(v, ast.Name):
            kinds.add(_of_criterion(facts, v))
        elif isinstance(v, ast.Call) and LOSS.fullmatch(facts.names.resolve(v.func) or ""):
            kinds.add(_asked(v) or "mean")
        else:
            kinds.add(None)
    return kinds.pop() if len(kinds) == 1 else None


def _asked(call: ast.Call) -> str | None:
    """What `reduction=` or the old `size_average=` says."""
    for k in call.keywords:
        if isinstance(k.value, ast.Constant):
            if k.arg == "reduction" and k.value.value in ("sum", "mean"):
                return str(k.value.value)
            if k.arg == "size_average":
                return "mean" if k.value.value else "sum"
    return None

"""Whether a loss is a mean or a sum over the samples of its batch: a sum is added over ranks, a mean is weighted."""

from __future__ import annotations

import ast
import re

from ..codemods.unread_attributes import calls_of_class
from ..facts.devices import argument
from ..facts.nodes import walk
from ..facts.script import Facts
from .nodes import local_function, walk_here
from .recipe import CannotLift, Recipe

MOVED = ("to", "cuda", "cpu", "float", "double", "half")
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
                    if found == "sum" and isinstance(n, ast.AugAssign):
                        _check_penalty(facts, n.value, n, body)
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
    if isinstance(node.op, ast.Add | ast.Sub) and {left, right} == {"sum", None}:
        _check_penalty(facts, node.left if left is None else node.right, node, body)
    return left or right


def _check_penalty(facts: Facts, term: ast.expr, node: ast.AST, body: list[ast.stmt]) -> None:
    """Raise where a term of the weights is added to a sum over the batch: every process would add it once more."""
    if _of_parameters(term, body):
        raise CannotLift(node, f"`{facts.short(node)}` adds a term of the weights to a sum over the batch")


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
        return None if _of_parameters(inner, body) else "sum"
    if last == "mean":
        return "mean"
    if full is not None and full.startswith("torch.nn.functional."):
        return "mean"
    if full is None and isinstance(call.func, ast.Name | ast.Attribute):
        return _when_called(facts, call.func, depth)
    return None


def _of_function(facts: Facts, f: ast.FunctionDef | ast.AsyncFunctionDef, depth: int) -> str | None:
    returned = [n.value for n in walk_here(f) if isinstance(n, ast.Return) and n.value is not None]
    return _only({reduction_of(facts, value, f.body, depth + 1) for value in returned})


def _only(kinds: set[str | None]) -> str | None:
    return kinds.pop() if len(kinds) == 1 else None


def _of_parameters(node: ast.expr, body: list[ast.stmt], depth: int = 0) -> bool:
    """Whether an expression is of the weights, or of what the step made of them: `for p in net.parameters()`."""
    of_weights = ("parameters", "named_parameters", *(("weight", "bias") if not depth else ()))
    if any(isinstance(n, ast.Attribute) and n.attr in of_weights for n in walk(node)):
        return True
    names = {n.id for n in walk(node) if isinstance(n, ast.Name)}
    made = [n for s in body for n in walk_here(s)] if names and depth < 4 else []
    for n in made:
        if not isinstance(n, ast.Assign | ast.AugAssign | ast.For):
            continue
        if not isinstance(n, ast.For) and any(x is node for x in walk(n)):
            continue  # what it is made of, and not what it was before
        targets = n.targets if isinstance(n, ast.Assign) else [n.target]
        stored = {t.id for target in targets for t in walk(target) if isinstance(t, ast.Name)}
        if stored & names and _of_parameters(n.iter if isinstance(n, ast.For) else n.value, body, depth + 1):
            return True
    return False


def _when_called(facts: Facts, made: ast.expr, depth: int) -> str | None:
    """What `criterion`, `self.criterion`, `nn.MSELoss()`, `Own()`, a function of this file give when called."""
    if depth > 12:
        return None
    if isinstance(made, ast.Name):
        f = local_function(facts, made)
        return _of_function(facts, f, depth) if f is not None else _of_name_called(facts, made, depth)
    if isinstance(made, ast.Attribute):
        return _of_attribute(facts, made, depth)
    if not isinstance(made, ast.Call):
        return None
    if LOSS.fullmatch(facts.names.resolve(made.func) or ""):
        return _asked(made) or "mean"
    if isinstance(made.func, ast.Attribute) and made.func.attr in MOVED:
        return _when_called(facts, made.func.value, depth + 1)
    own = [c for c in facts.classes.modules if isinstance(made.func, ast.Name) and c.name == made.func.id]
    forward = facts.classes.methods(own[0]).get("forward") if len(own) == 1 else None
    return _of_function(facts, forward, depth) if forward is not None else None


def _of_name_called(facts: Facts, name: ast.Name, depth: int) -> str | None:
    """`criterion = nn.MSELoss(reduction="sum")`, in whatever scope the name is bound."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    if scope is None:
        return None
    values = facts.devices.assigned(name.id, scope) or []
    if name.id in scope.params:
        values = [*values, *(facts.devices.given(scope, name.id) or _given_to_class(facts, scope.node, name.id))]
    return _only({_when_called(facts, v, depth + 1) for v in values})


def _given_to_class(facts: Facts, f: ast.AST, name: str) -> list[ast.expr]:
    """What the constructor `f` of a class is given for a parameter."""
    c = facts.classes.holder(f)
    if c is None or not isinstance(f, ast.FunctionDef) or f.name != "__init__":
        return []
    return [v for call in calls_of_class(facts, c) or () if (v := argument(call, f, name, True)) is not None]


def _of_attribute(facts: Facts, a: ast.Attribute, depth: int) -> str | None:
    """`self.criterion`: what any class of the file sets it to; `self.loss`, `model.loss`: what its method returns."""
    methods = [m for c in facts.walk(ast.ClassDef) if (m := facts.classes.methods(c).get(a.attr)) is not None]
    stores = [n for n in facts.walk(ast.Attribute) if n.attr == a.attr and isinstance(n.ctx, ast.Store)]
    ups = [facts.scopes.parents.get(n) for n in stores]
    kinds = {_of_function(facts, m, depth) for m in methods}
    kinds |= {_when_called(facts, up.value, depth + 1) for up in ups if isinstance(up, ast.Assign)}
    return _only(kinds)


def _asked(call: ast.Call) -> str | None:
    """What `reduction=` or the old `size_average=` says."""
    for k in call.keywords:
        if isinstance(k.value, ast.Constant):
            if k.arg == "reduction" and k.value.value in ("sum", "mean"):
                return str(k.value.value)
            if k.arg == "size_average":
                return "mean" if k.value.value else "sum"
    return None

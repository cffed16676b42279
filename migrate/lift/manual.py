"""Manual optimization: the batch loop's body stays in its order, with several optimizers, closures and conditions."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from .loaders import values_of
from .nodes import is_call_of, walk_here
from .optimizers import is_optimizer
from .recipe import CannotLift, DataPass, Optimization

GRADIENT = "gradient"  # the first argument of backward()
ONE_NUMBER = {"torch." + n for n in "tensor as_tensor Tensor FloatTensor DoubleTensor HalfTensor ones zeros".split()}
ONE_NUMBER |= {"torch.cuda." + n for n in ("FloatTensor", "DoubleTensor", "HalfTensor")}
PLACES = ("cuda", "to", "cpu", "type", "type_as", "float", "double", "half")


def manual_optimization(facts: Facts, train: DataPass, backwards: list[ast.Call], why: CannotLift) -> Optimization:
    """The optimizers and losses of a body that is kept; CannotLift where a loss or an optimizer is not shown.

    What the step makes itself, or takes one by one from a list, is no optimizer of the Module.
    """
    optimizers: dict[str, None] = {}
    for s in train.body:
        for n in walk(s):
            name = stepped_name(n)
            if name is not None and is_optimizer(facts, n, name) and not made_in_step(facts, train, n, name):
                optimizers[name] = None
    losses = []
    for call in backwards:
        assert isinstance(call.func, ast.Attribute)
        losses.append(call.func.value)
    for s in train.body:
        for n in () if isinstance(s, ast.FunctionDef) else walk_here(s):
            if isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)):
                raise CannotLift(n, "the batch loop is left early")
    return Optimization(losses, list(optimizers), manual=True, why=why)


def given_gradient(facts: Facts, train: DataPass) -> CannotLift | None:
    """Why the step needs whole batches: a backward() is given a gradient that does not show to be one number."""
    for call in (n for s in train.body for n in walk(s, ast.Call) if is_call_of(n, "backward")):
        given = next((k.value for k in call.keywords if k.arg == GRADIENT), call.args[0] if call.args else None)
        if given is not None and not _is_one_number(facts, given, frozenset()):
            return CannotLift(call, f"`{facts.short(given)}` may weigh the samples of a batch")
    return None


def _is_one_number(facts: Facts, node: ast.expr, asked: frozenset[str]) -> bool:
    """`torch.FloatTensor([1])`, `one * -1`, `mone.cuda()`: of one element, whatever the batch is."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.UnaryOp):
        return _is_one_number(facts, node.operand, asked)
    if isinstance(node, ast.BinOp):
        return all(_is_one_number(facts, side, asked) for side in (node.left, node.right))
    if isinstance(node, (ast.List, ast.Tuple)):
        return len(node.elts) == 1 and _is_one_number(facts, node.elts[0], asked)
    if isinstance(node, ast.Name):
        scope = facts.scopes.scope_of(node).lookup(node.id)
        values = values_of(facts, node.id, scope) if scope is not None and node.id not in scope.params else []
        return node.id in asked or (bool(values) and all(_is_one_number(facts, v, asked | {node.id}) for v in values))
    if not isinstance(node, ast.Call):
        return False
    full = facts.names.resolve(node.func)
    if full in ONE_NUMBER:
        sized = full.rpartition(".")[2] in ("ones", "zeros")
        shape = node.args[0] if node.args else None
        shape = shape.elts[0] if isinstance(shape, (ast.List, ast.Tuple)) and len(shape.elts) == 1 else shape
        one = isinstance(shape, ast.Constant) and shape.value == 1
        return len(node.args) == 1 and (one if sized else _is_one_number(facts, node.args[0], asked))
    moved = isinstance(node.func, ast.Attribute) and node.func.attr in PLACES
    return moved and _is_one_number(facts, node.func.value, asked)  # type: ignore[attr-defined]


def made_in_step(facts: Facts, train: DataPass, at: ast.AST, name: str) -> bool:
    """Whether a name that the step reads is the step's own: the target of a loop around it, or set nowhere else."""
    for up in facts.scopes.ancestors(at):
        if up is train.loop:
            break
        if isinstance(up, ast.For) and any(n.id == name for n in walk(up.target, ast.Name)):
            return True
    scope = facts.scopes.scope_of(at).lookup(name)
    stores = scope.stores.get(name, ()) if scope is not None and name not in scope.params else ()
    return bool(stores) and all(train.loop in facts.scopes.ancestors(s) for s in stores)


def stepped_name(n: ast.AST) -> str | None:
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

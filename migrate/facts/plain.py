"""Which tensors are plain data: batches and tensors made here, with no graph behind them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .placed import LIKE, MAKES_TENSORS

if TYPE_CHECKING:
    from .script import Facts

VARIABLE = "torch.autograd.Variable"
# methods that give data when they are called on data
KEEPS = set(
    "cuda cpu to view reshape float double half long int byte type type_as unsqueeze squeeze transpose permute "
    "contiguous "
    "clone detach size expand repeat t numpy normal_ fill_ zero_ uniform_ index_select narrow".split()
)


def is_data(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """Whether a value surely has no graph, so that detaching it changes nothing."""
    if depth > 6:
        return False
    if isinstance(node, ast.Call):
        full = facts.names.resolve(node.func)
        if full == VARIABLE:
            return not any(k.arg == "requires_grad" for k in node.keywords) and len(node.args) == 1
        if full is not None:
            makes = (full in MAKES_TENSORS and full != "torch.load") or full in LIKE
            return makes and not any(k.arg == "requires_grad" for k in node.keywords)
        if _is_type(facts, node.func):
            return True
        if isinstance(node.func, ast.Attribute) and node.func.attr in KEEPS:
            return is_data(facts, node.func.value, depth + 1)
        return False
    if isinstance(node, ast.Attribute):  # `x.data` of any tensor
        return node.attr == "data" and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    if isinstance(node, ast.Subscript):
        return is_data(facts, node.value, depth + 1)
    if isinstance(node, ast.IfExp):
        return is_data(facts, node.body, depth + 1) and is_data(facts, node.orelse, depth + 1)
    if isinstance(node, ast.Name):
        return _name(facts, node, depth)
    return False


def _is_type(facts: Facts, func: ast.expr) -> bool:
    """`Tensor` that is only ever given types: `torch.cuda.FloatTensor if cuda else torch.FloatTensor`."""
    scope = facts.scopes.scope_of(func).lookup(func.id) if isinstance(func, ast.Name) else None
    made = facts.devices.assigned(func.id, scope) if scope is not None else None  # type: ignore[attr-defined]
    values = [part for v in made or () for part in ([v.body, v.orelse] if isinstance(v, ast.IfExp) else [v])]
    return bool(values) and all((facts.names.resolve(v) or "").endswith("Tensor") for v in values)


def is_new(facts: Facts, node: ast.expr) -> bool:
    """Whether a tensor is made right there, and known by no other name: `torch.zeros(3).cuda()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEEPS:
        node = node.func.value
    full = facts.names.resolve(node.func) if isinstance(node, ast.Call) else None
    return full in {*MAKES_TENSORS, *LIKE} - {"torch.load", "torch.as_tensor"} and is_data(facts, node)


def _name(facts: Facts, node: ast.Name, depth: int) -> bool:
    scope = facts.scopes.scope_of(node).lookup(node.id)
    if scope is None or node.id in scope.params:
        return False
    stores = scope.stores.get(node.id, [])
    return bool(stores) and all(_store(facts, s, node.id, depth) for s in stores)


def _store(facts: Facts, store: ast.AST, name: str, depth: int) -> bool:
    parents = facts.scopes.parents
    child = store
    while isinstance(parents.get(child), (ast.Tuple, ast.List)):
        child = parents[child]
    up = parents.get(child)
    if isinstance(up, ast.For):
        called = up.iter.func if isinstance(up.iter, ast.Call) else None
        return not (isinstance(called, ast.Name) and called.id in ("range", "trange"))
    if not isinstance(up, ast.Assign):
        return False
    value = up.value
    if child is not store:
        assert isinstance(child, (ast.Tuple, ast.List))
        if not (isinstance(value, ast.Tuple) and store in child.elts and len(value.elts) == len(child.elts)):
            return _rebinds(facts, value, name)
        value = value.elts[child.elts.index(store)]
    return _rebinds(facts, value, name) or is_data(facts, value, depth + 1)


def _rebinds(facts: Facts, value: ast.expr, name: str) -> bool:
    """`x = Variable(x.cuda())`, `x = x.view(-1)`: no more graph than x had."""
    if isinstance(value, ast.Name):
        return value.id == name
    if isinstance(value, ast.IfExp):
        return _rebinds(facts, value.body, name) and _rebinds(facts, value.orelse, name)
    if isinstance(value, ast.Call):
        if facts.names.resolve(value.func) == VARIABLE and len(value.args) == 1:
            return _rebinds(facts, value.args[0], name)
        return (
            isinstance(value.func, ast.Attribute)
            and value.func.attr in KEEPS
            and _rebinds(facts, value.func.value, name)
        )
    return False


def is_bare_variable(facts: Facts, call: ast.Call) -> bool:
    """`Variable(x)` of plain data, which is x today; `volatile` has had no effect since 0.4."""
    return (
        facts.names.resolve(call.func) == VARIABLE
        and len(call.args) == 1
        and not isinstance(call.args[0], ast.Starred)
        and all(
            k.arg == "volatile"
            or (k.arg == "requires_grad" and isinstance(k.value, ast.Constant) and not k.value.value)
            for k in call.keywords
        )
        and is_data(facts, call.args[0])
    )

"""Where a tensor goes that a network meets below the training: `best(X.to(device))`.

The Trainer placed the network it trained; one that is made beside it stays where it was made: its parameters say where.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..facts.asked import asks
from ..facts.classes import WEIGHTED
from ..facts.nodes import walk
from ..facts.placed import MODULE_NAME
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..facts.unplaced import below_training
from ..facts.uses import uses
from ._tensor_names import TENSOR_USE, used

HAS_WEIGHTS = ("parameters", "named_parameters", "load_state_dict")
DEPTH = 3  # of functions that give back what others made


def network_below(facts: Facts, made: ast.Call) -> str | None:
    """What is where the network is that meets what a call places, or the name that keeps it; None where none shows."""
    s = facts.scopes.statement_of(made)
    if not below_training(facts, s):
        return None
    kept = _kept_as(s, made)
    if kept is None:
        beside = (_parameter(facts, up.func, made) for up in facts.scopes.ancestors(made) if isinstance(up, ast.Call))
        given = next(filter(None, beside), None)  # the network that gets it
        return given or _output(facts, s, made) or _met_in(facts, [s], made)
    scope = facts.scopes.scope_of(kept).lookup(kept.id)
    reads = facts.scopes.reads(kept.id, scope) if scope is not None else ()
    return _met_in(facts, map(facts.scopes.statement_of, reads), made)


def _kept_as(s: ast.stmt, made: ast.Call) -> ast.Name | None:
    """`b` of `b = made` and of `a, b = x, made`."""
    if not isinstance(s, ast.Assign) or len(s.targets) != 1:
        return None
    target, value = s.targets[0], s.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        target, value = next((p for p in zip(target.elts, value.elts, strict=True) if p[1] is made), (target, value))
    return target if isinstance(target, ast.Name) and value is made else None


def _met_in(facts: Facts, statements: Iterable[ast.stmt], made: ast.Call) -> str | None:
    """A parameter of the network that one of the statements calls, or that gave what it reads."""
    for n in (n for s in statements for n in walk(s)):
        if isinstance(n, ast.Call) and (found := _parameter(facts, n.func, made)) is not None:
            return found
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and (gave := _gave(facts, n, made)) is not None:
            return gave
    return None


def _output(facts: Facts, s: ast.stmt, made: ast.Call) -> str | None:
    """`out` of `(out.argmax(1) == Y.cuda()).sum()`, which a network gave."""
    around = next((u for u in facts.scopes.ancestors(s) if isinstance(u, ast.FunctionDef)), facts.tree)
    names = (n for n in walk(s, ast.Name) if isinstance(n.ctx, ast.Load))
    given = (n.id for n in names if made not in facts.scopes.ancestors(n) and _gave(facts, n, made) is not None)
    return next((name for name in given if used(uses(around), name) & TENSOR_USE), None)


def _gave(facts: Facts, name: ast.Name, made: ast.Call) -> str | None:
    """A parameter of a network whose calls alone give a name its values."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    values = facts.devices.assigned(name.id, scope) if scope is not None else None
    found = [_parameter(facts, v.func, made) if isinstance(v, ast.Call) else None for v in values or []]
    return found[0] if found and None not in found else None


def _parameter(facts: Facts, node: ast.expr, made: ast.Call) -> str | None:
    """`next(net.parameters())` of a network with weights that is there where the tensor is placed."""
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    if scope is None or not isinstance(node, ast.Name) or facts.scopes.scope_of(made).lookup(node.id) is not scope:
        return None
    stores = scope.stores.get(node.id, [])
    above = node.id in scope.params or any(getattr(n, "lineno", made.lineno) < made.lineno for n in stores)
    own = any(isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.alias)) for n in stores)
    if not above or own or node.id in MODULE_NAME:
        return None
    return f"next({node.id}.parameters())" if _has_weights(facts, node.id, scope) else None


def _has_weights(facts: Facts, name: str, scope: Scope, depth: int = 0) -> bool:
    """By what it is asked for, or by its class."""
    values = facts.devices.assigned(name, scope) or []
    if any(isinstance(v, ast.Call) and (facts.names.resolve(v.func) or "").endswith("Loss") for v in values):
        return False
    if any(asks(facts, read, HAS_WEIGHTS) for read in facts.scopes.reads(name, scope)):
        return True
    return bool(values) and depth < DEPTH and all(_is_made_with(facts, _called_on(facts, v), depth) for v in values)


def _is_made_with(facts: Facts, made: ast.expr, depth: int) -> bool:
    """`Net()` of a class of the file that keeps a layer, a layer; what a function gives back that loaded it."""
    if _is_layer(facts, made):
        return True
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name):
        return False
    f, name = facts.devices.function_of(made), made.func.id
    if f is None:
        return any(c.name == name and facts.classes.weight(c) is not None for c in facts.classes.modules)
    own = facts.scopes.by_node[f]
    back = [_called_on(facts, n.value) for n in walk(f, ast.Return) if n.value is not None]
    return bool(back) and all(isinstance(v, ast.Name) and _has_weights(facts, v.id, own, depth + 1) for v in back)


def _is_layer(facts: Facts, made: ast.expr) -> bool:
    """`nn.Linear(2, 2)`, `nn.Sequential(nn.Linear(2, 2), nn.ReLU())`"""
    if not isinstance(made, ast.Call):
        return False
    package, _, kind = (facts.names.resolve(made.func) or "").rpartition(".")
    if package != "torch.nn":
        return False
    return WEIGHTED.match(kind) is not None or (kind == "Sequential" and any(_is_layer(facts, a) for a in made.args))


def _called_on(facts: Facts, node: ast.expr) -> ast.expr:
    """`net` of `net.to(device).eval()`, `nn.Linear(2, 2)` of `nn.Linear(2, 2).cuda()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if facts.names.resolve(node.func) is not None:
            break
        node = node.func.value
    return node

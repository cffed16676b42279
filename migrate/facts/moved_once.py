"""What a script moves once, above the loop that trains, and that is no network: no loader gives it, nothing places it.

`g = data[0].to(device)`, `def train(model, features): features = features.to(device)`, `g = load(args).to(device)`
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .back_from_cpu import MOVES
from .unplaced import before_the_loop

if TYPE_CHECKING:
    from .script import Facts

DEEP = 4  # names of names


def is_moved_once(facts: Facts, node: ast.expr) -> bool:
    """Whether a value is moved there that shows no sign of being a network: taken from something, given, or loaded."""
    up = facts.scopes.parents.get(node)
    call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) and up.attr in MOVES else None
    if not (isinstance(call, ast.Call) and call.func is up):
        return False
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        node = node.func.value  # graph.int().to(device)
    if not isinstance(node, (ast.Name, ast.Subscript)):
        return False
    s = facts.scopes.statement_of(call)
    if not before_the_loop(facts, s):
        return False
    names = [n for t in getattr(s, "targets", ()) for n in ([t] if isinstance(t, ast.Name) else getattr(t, "elts", ()))]
    names += [node] if isinstance(node, ast.Name) else []
    if any(isinstance(n, ast.Name) and _is_network(facts, n) for n in names):
        return False
    return _is_taken(facts, node)


def _is_network(facts: Facts, name: ast.Name) -> bool:
    scope = facts.scopes.scope_of(name).lookup(name.id)
    return scope is not None and facts.placed.used_as_module(name.id, scope)


def _is_taken(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """`data[0]`, a parameter, what a function of another file loads, or a name that was given one of them."""
    if isinstance(node, ast.Subscript):
        of = node.value
        return isinstance(node.slice, ast.Constant) and isinstance(of, ast.Name) and not _is_network(facts, of)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and not facts.placed.is_module(node)
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    if scope is None or not isinstance(node, ast.Name) or depth > DEEP:
        return False
    above = (s for s in scope.stores.get(node.id, ()) if getattr(s, "lineno", 0) <= node.lineno)
    given = [v for s in above if not _is_moved(facts, v := _given(facts, s))]
    if not given and node.id not in scope.params:
        return False
    return all(v is not None and _is_taken(facts, v, depth + 1) for v in given)


def _is_moved(facts: Facts, value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and facts.devices.moved(value) is not None


def _given(facts: Facts, store: ast.AST) -> ast.expr | None:
    up = facts.scopes.parents.get(store)
    up = facts.scopes.parents.get(up) if isinstance(up, ast.Tuple) else up
    return up.value if isinstance(up, ast.Assign) else None

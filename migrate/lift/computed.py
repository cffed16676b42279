"""Tensors that a network computes above the loop, where no Trainer has placed it yet: they go where the Module is.

with torch.no_grad():
    prototypes = backbone(images)
"""

from __future__ import annotations

import ast

from ..codemods.back_on_cpu import brought
from ..facts.always_before import always_before
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..facts.tensor_methods import FUNCTIONS, METHODS, VIEWS
from ..facts.unplaced import given_by_network, is_network
from .called_networks import calls_network
from .optimizers import attribute_values

OF_SEVERAL = set("cat stack hstack vstack concat block_diag einsum".split())
TAKE_TENSORS = {f"torch.{n}" for n in (FUNCTIONS | {"dist"}) - OF_SEVERAL}
DEPTH = 4  # of names and functions that hand on what one of them computed


def computed(facts: Facts, name: str, scope: Scope, loop: ast.stmt) -> bool:
    """Whether what a name is when the loop begins is one tensor that a network computed, left where that one is."""
    given = given_above(facts, name, scope, loop)
    values = [_value(facts, s, name) for s in given]
    return bool(values) and all(v is not None and _computed(facts, v, (name, scope)) for v in values)


def given_above(facts: Facts, name: str, scope: Scope, loop: ast.stmt) -> list[ast.stmt]:
    """The statements that may give a name what it is when the loop begins."""
    stores = [] if name in scope.params else scope.stores.get(name, [])
    given = [s for s in map(facts.scopes.statement_of, stores) if s.lineno < loop.lineno]
    taking = [s for s in given if isinstance(s, ast.Assign) and always_before(facts, s, loop)]
    first = max((s.lineno for s in taking), default=0)
    return [s for s in given if s.lineno >= first]


def left_there(facts: Facts, name: str, scope: Scope, loop: ast.stmt) -> ast.expr | None:
    """What a network gives a name above the loop of which it does not show what it is: it stays on the CPU."""
    for s in given_above(facts, name, scope, loop):
        value = s.value if isinstance(s, ast.Assign) else None
        called = isinstance(value, ast.Call) and _calls(facts, value) and not facts.placed.is_module(value)
        if called and not computed(facts, name, scope, loop):
            return value
    return None


def _value(facts: Facts, s: ast.stmt, name: str) -> ast.expr | None:
    """What a statement gives a name, `fixed, other = net(x), net(y)` too."""
    if not isinstance(s, ast.Assign):
        return None
    for target in s.targets:
        if isinstance(target, ast.Name) and target.id == name:
            return s.value
        for e in target.elts if isinstance(target, ast.Tuple) else []:
            if isinstance(e, ast.Name) and e.id == name and isinstance(target, ast.Tuple):
                values = facts.devices.elements(target, e, s.value)
                return values[0] if values and len(values) == 1 else None
    return None


def _computed(facts: Facts, value: ast.expr, named: tuple[str, Scope] | None, depth: int = 0) -> bool:
    """`named`: the name that keeps the value, whose reads show whether it is one tensor."""
    if depth > DEPTH or brought(facts, value):
        return False
    if given_by_network(facts, value):
        return True
    if isinstance(value, ast.Name):
        scope = facts.scopes.scope_of(value).lookup(value.id)
        values = facts.devices.assigned(value.id, scope) if scope is not None and value.id not in scope.params else None
        return bool(values) and all(_computed(facts, v, named, depth + 1) for v in values or ())
    if isinstance(value, ast.BinOp):
        return any(_computed(facts, side, named, depth + 1) for side in (value.left, value.right))
    if not isinstance(value, ast.Call):
        return False
    if _calls(facts, value):
        return named is not None and _is_one_tensor(facts, *named)
    f = value.func
    full = facts.names.resolve(f) or ""
    if full.startswith("torch.") and value.args and full.rpartition(".")[2] in FUNCTIONS:
        return _of_network(facts, value.args[0], depth)
    if isinstance(f, ast.Attribute) and f.attr in METHODS and not full:
        return _of_network(facts, f.value, depth)
    returned = facts.devices.returned(value)
    return bool(returned) and all(_computed(facts, r, named, depth + 1) for r in returned)


def _of_network(facts: Facts, given: ast.expr, depth: int) -> bool:
    """What a function that makes one tensor is given: an output, a list of such, or a list that is filled with them."""
    parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given]
    if isinstance(given, (ast.ListComp, ast.GeneratorExp)):
        parts = [given.elt]
    if isinstance(given, ast.Name):
        scope = facts.scopes.scope_of(given).lookup(given.id)
        held = facts.tensors.filled.held(given.id, scope) if scope is not None else None
        parts = held.elements if held is not None else parts
    found = [p for p in parts if is_output(facts, p, depth)]
    return bool(found) and not any(brought(facts, p) for p in parts)


def is_output(facts: Facts, part: ast.expr, depth: int) -> bool:
    """Whether it is what a network gives, or is computed from that."""
    while isinstance(part, ast.Subscript):
        part = part.value
    return (isinstance(part, ast.Call) and _calls(facts, part)) or _computed(facts, part, None, depth + 1)


def _calls(facts: Facts, call: ast.Call) -> bool:
    named = calls_network(facts, call) or (bool(call.args) and is_network(facts, call.func))
    return named and _is_kept(facts, call.func)


def _is_kept(facts: Facts, f: ast.expr) -> bool:
    """Whether a name or attribute is given values, and is no function: `load_model(path)` is called as one is."""
    if isinstance(f, ast.Attribute):
        return bool(attribute_values(facts, f))
    scope = facts.scopes.scope_of(f).lookup(f.id) if isinstance(f, ast.Name) else None
    if scope is None or not isinstance(f, ast.Name):
        return False
    return f.id in scope.params or any(isinstance(s, ast.Name) for s in scope.stores[f.id])


def _is_one_tensor(facts: Facts, name: str, scope: Scope) -> bool:
    """Whether something that only a tensor can do is done with a name."""
    return any(_as_tensor(facts, r) for r in facts.scopes.reads(name, scope))


def _as_tensor(facts: Facts, read: ast.Name) -> bool:
    up = facts.scopes.parents.get(read)
    if isinstance(up, ast.Attribute):
        return up.attr in METHODS | VIEWS
    if isinstance(up, ast.BinOp):
        return True
    if not isinstance(up, ast.Call) or up.func is read:
        return False
    full = facts.names.resolve(up.func) or ""
    return _calls(facts, up) or full.startswith("torch.nn.functional.") or full in TAKE_TENSORS

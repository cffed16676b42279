"""Where a tensor goes that a network meets below the training: `best(X.to(device))`.

The Trainer placed the network it trained; one that is made beside it stays where it was made: its parameters say where.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.unplaced import below_training
from ..facts.uses import uses
from ._tensor_names import TENSOR_USE, used

if TYPE_CHECKING:
    from ..facts.scopes import Scope

HAS_WEIGHTS = {"parameters", "named_parameters", "load_state_dict", "state_dict"}


def network_below(facts: Facts, made: ast.Call) -> str | None:
    """What is where the network is that meets what a call places, or the name that keeps it; None where none shows."""
    s = facts.scopes.statement_of(made)
    if not below_training(facts, s):
        return None
    target = _kept_as(s, made)
    if target is None:
        given = _networks_output(facts, s, made)
        return given or next((f"next({n}.parameters())" for n in _networks(facts, s, made)), None)
    scope = facts.scopes.scope_of(target).lookup(target.id)
    for read in facts.scopes.reads(target.id, scope) if scope is not None else ():
        for name in _networks(facts, facts.scopes.statement_of(read), made):
            return f"next({name}.parameters())"
    return None


def _kept_as(s: ast.stmt, made: ast.Call) -> ast.Name | None:
    """`b` of `b = made` and of `a, b = x, made`."""
    target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    value = s.value if isinstance(s, ast.Assign) else None
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        target = next((t for t, v in zip(target.elts, value.elts, strict=True) if v is made), None)
        return target if isinstance(target, ast.Name) else None
    return target if isinstance(target, ast.Name) and value is made else None


def _networks(facts: Facts, s: ast.stmt, made: ast.Call) -> Iterator[str]:
    """The networks that a statement calls, and those that gave what it reads."""
    for n in walk(s):
        if isinstance(n, ast.Call) and _is_network(facts, n.func, made):
            yield n.func.id  # type: ignore[attr-defined]
        elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
            yield from (f.id for f in _gave(facts, n, made) if isinstance(f, ast.Name))


def _networks_output(facts: Facts, s: ast.stmt, made: ast.Call) -> str | None:
    """`out` of `(out.argmax(1) == Y.cuda()).sum()`, which a network gave."""
    around = next((u for u in facts.scopes.ancestors(s) if isinstance(u, ast.FunctionDef)), facts.tree)
    within = set(walk(made))
    for n in walk(s):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n not in within and _gave(facts, n, made):
            return n.id if used(uses(around), n.id) & TENSOR_USE else None
    return None


def _gave(facts: Facts, name: ast.Name, made: ast.Call) -> list[ast.expr]:
    """The networks whose calls alone give a name its values."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    values = facts.devices.assigned(name.id, scope) if scope is not None else None
    called = [v.func for v in values or [] if isinstance(v, ast.Call) and _is_network(facts, v.func, made)]
    return called if values and len(called) == len(values) else []


def _is_network(facts: Facts, node: ast.expr, made: ast.Call) -> bool:
    """Whether a name is of a module with weights, by what it is asked for or by its class, that is made above."""
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    if scope is None or not isinstance(node, ast.Name):
        return False
    stores = scope.stores.get(node.id, [])
    above = [n for n in stores if getattr(n, "lineno", made.lineno) < made.lineno]
    if not above and node.id not in scope.params:
        return False
    if any(isinstance(n, ast.FunctionDef | ast.ClassDef | ast.alias) for n in stores):
        return False
    values = facts.devices.assigned(node.id, scope) or []
    return _asks(facts, node.id, scope) or (bool(values) and all(_has_weight(facts, v) for v in values))


def _asks(facts: Facts, name: str, scope: Scope) -> bool:
    """Whether a name is asked for what only a module has: `net.load_state_dict(state)`."""
    ups = (facts.scopes.parents.get(r) for r in facts.scopes.reads(name, scope))
    asked = [up for up in ups if isinstance(up, ast.Attribute) and up.attr in HAS_WEIGHTS]
    return any(isinstance(facts.scopes.parents.get(up), ast.Call) for up in asked)


def _has_weight(facts: Facts, made: ast.expr) -> bool:
    """`Net()`, `Net().cuda()`, of a class of the file that keeps a layer; what a function gives that loaded it."""
    made = _root(made)
    f = facts.devices.function_of(made) if isinstance(made, ast.Call) else None
    if f is not None:
        given = [_root(n.value) for n in walk(f) if isinstance(n, ast.Return) and n.value is not None]
        names = [v for v in given if isinstance(v, ast.Name)]
        own = facts.scopes.by_node[f]
        return bool(given) and len(names) == len(given) and all(_asks(facts, n.id, own) for n in names)
    name = made.func.id if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else None
    return any(c.name == name and facts.classes.weight(c) is not None for c in facts.classes.modules)


def _root(node: ast.expr) -> ast.expr:
    """`net` of `net.to(device).eval()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node

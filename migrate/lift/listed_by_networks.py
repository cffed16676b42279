"""What a network gives back as a list, one element a layer: `out, attention = model(x)`, `range(len(attention))`."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from .loaders import values_of
from .owned import class_there


def is_listed(facts: Facts, call: ast.Call, place: int | None) -> bool:
    """Whether all that a call of a network of the project returns, or has at that place, is a list made in forward."""
    there, c = facts, facts.devices.own_movers.class_of(call.func)
    if c is None and isinstance(call.func, ast.Name):
        there, c = class_there(facts, call.func)
    f = there.classes.method(c, "forward") if c is not None else None
    returned = [n.value for n in walk(f, ast.Return) if n.value is not None] if f is not None else []
    parts = [_at(v, place) for v in returned]
    return bool(parts) and all(e is not None and _makes_list(there, e) for e in parts)


def _at(value: ast.expr, place: int | None) -> ast.expr | None:
    if place is None:
        return value
    return value.elts[place] if isinstance(value, ast.Tuple) and place < len(value.elts) else None


def _makes_list(facts: Facts, e: ast.expr) -> bool:
    if isinstance(e, ast.Name):
        scope = facts.scopes.scope_of(e).lookup(e.id)
        values = values_of(facts, e.id, scope) if scope is not None else []
        return bool(values) and all(isinstance(v, (ast.List, ast.ListComp)) for v in values)
    return isinstance(e, (ast.List, ast.ListComp))

"""What a network gives back as a list, one element a layer: `out, attention = model(x)`, `range(len(attention))`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.back_from_cpu import itself
from ..facts.nodes import walk
from ..facts.other_files import found_there
from ..facts.script import Facts
from .loaders import values_of


def is_listed(facts: Facts, call: ast.Call, place: int | None) -> bool:
    """Whether all that a call of a network of the project returns, or has at that place, is a list made in forward."""
    for home, c in _classes(facts, call.func):
        f = home.classes.methods(c).get("forward")
        returned = [n.value for n in walk(f, ast.Return) if n.value is not None] if f is not None else []
        parts = [_at(v, place) for v in returned]
        if not parts or not all(e is not None and _makes_list(home, e) for e in parts):
            return False
    return any(True for _ in _classes(facts, call.func))


def _classes(facts: Facts, func: ast.expr) -> Iterator[tuple[Facts, ast.ClassDef]]:
    """The class of what is called, of this file or of another."""
    values: list[ast.expr] = []
    if isinstance(func, ast.Name):
        scope = facts.scopes.scope_of(func).lookup(func.id)
        values = (facts.devices.assigned(func.id, scope) if scope is not None else None) or []
    elif isinstance(func, ast.Attribute):
        values = facts.devices.attribute_values.get(func.attr, [])
    for made in map(itself, values):
        name = made.func.id if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else None
        own = [c for c in facts.classes.modules if c.name == name]
        there = found_there(facts, made.func) if isinstance(made, ast.Call) and not own and facts.others else None
        if own:
            yield facts, own[0]
        elif there is not None and isinstance(there[2], ast.ClassDef):
            yield there[1], there[2]


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

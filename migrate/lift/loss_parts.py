"""Which of several values that are given together a step takes: `loss, parts = losses(x)`, `found["loss"]`."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts

Key = int | str


def key_of(index: ast.expr) -> Key | None:
    """The place or the name that an index is written out as."""
    negative = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
    constant = index.operand if negative else index  # type: ignore[attr-defined]
    value = constant.value if isinstance(constant, ast.Constant) else None
    if isinstance(value, str):
        return None if negative else value
    return (-value if negative else value) if isinstance(value, int) and not isinstance(value, bool) else None


def element(e: ast.expr, key: Key) -> ast.expr | None:
    """That part of a tuple, a list or a dictionary that is written out; None where it does not show."""
    if isinstance(e, (ast.Tuple, ast.List)) and isinstance(key, int):
        plain = not any(isinstance(x, ast.Starred) for x in e.elts)
        return e.elts[key] if plain and -len(e.elts) <= key < len(e.elts) else None
    if isinstance(e, ast.Dict) and None not in e.keys:
        found = [v for k, v in zip(e.keys, e.values, strict=True) if isinstance(k, ast.Constant) and k.value == key]
        return found[-1] if found else None
    return None


def constructed(facts: Facts, call: ast.Call, key: Key) -> ast.expr | None:
    """What an object is made with under a name or in a place: `Losses(total=a).total`, `dict(total=a)["total"]`."""
    named = {k.arg: k.value for k in call.keywords if k.arg is not None}
    if isinstance(key, str) and key in named:
        return named[key]
    fields = _fields(facts, call.func) if isinstance(call.func, ast.Name) else []
    if isinstance(key, int):
        key = fields[key] if -len(fields) <= key < len(fields) else ""
        return named.get(key) or dict(zip(fields, call.args, strict=False)).get(key)
    return dict(zip(fields, call.args, strict=False)).get(key)


def _fields(facts: Facts, name: ast.Name) -> list[str]:
    """The fields of a class of this file, in order: what its body annotates, or what a namedtuple is told."""
    for c in facts.walk(ast.ClassDef):
        if c.name == name.id:
            return [s.target.id for s in c.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    scope = facts.scopes.scope_of(name).lookup(name.id)
    made = facts.devices.assigned(name.id, scope) if scope is not None else None
    call = made[0] if made and len(made) == 1 else None
    if not isinstance(call, ast.Call) or facts.names.resolve(call.func) != "collections.namedtuple":
        return []
    told = call.args[1] if len(call.args) > 1 else None
    if isinstance(told, ast.Constant) and isinstance(told.value, str):
        return told.value.replace(",", " ").split()
    elts = told.elts if isinstance(told, (ast.List, ast.Tuple)) else []
    return [e.value for e in elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]


def of_each(target: ast.expr, name: str, source: ast.expr) -> ast.expr | None:
    """What holds the values that a loop gives a name: `d` for `v` of `for k, v in d.items()`, `b` of `zip(a, b)`."""
    call = source if isinstance(source, ast.Call) else None
    if isinstance(target, ast.Name):
        values = call is not None and isinstance(call.func, ast.Attribute) and call.func.attr == "values"
        return (call.func.value if values else source) if target.id == name else None  # type: ignore[union-attr]
    if not isinstance(target, (ast.Tuple, ast.List)) or call is None:
        return None
    at = next((i for i, t in enumerate(target.elts) if any(n.id == name for n in walk(t, ast.Name))), None)
    if at is None:
        return None
    if isinstance(call.func, ast.Attribute) and call.func.attr == "items":
        return call.func.value if at == 1 and isinstance(target.elts[1], ast.Name) else None
    if not isinstance(call.func, ast.Name) or not call.args:
        return None
    if call.func.id == "zip" and at < len(call.args) and not isinstance(call.args[at], ast.Starred):
        return of_each(target.elts[at], name, call.args[at])
    return of_each(target.elts[1], name, call.args[0]) if call.func.id == "enumerate" and at == 1 else None


def same_places(e: ast.expr) -> ast.expr | None:
    """`found[:2]`: what has the same parts in the same places, as far as it goes."""
    cut = e.slice if isinstance(e, ast.Subscript) else None
    if not isinstance(cut, ast.Slice) or cut.step is not None or (cut.lower is not None and key_of(cut.lower) != 0):
        return None
    return e.value  # type: ignore[attr-defined]


def sets(n: ast.AST) -> Key | None:
    """The key of `losses["a"] = loss`."""
    target = n.targets[0] if isinstance(n, ast.Assign) else n.target if isinstance(n, ast.AugAssign) else None
    return key_of(target.slice) if isinstance(target, ast.Subscript) else None

"""What a function of the script's own gives back as it was given it: `def log(x): print(x); return x`."""

from __future__ import annotations

import ast

from ..facts.arguments import argument
from ..facts.nodes import walk
from ..facts.script import Facts
from .nodes import local_function, walk_here

AS_NUMBER = ("item", "detach", "cpu", "float", "double", "clone")


def as_given(facts: Facts, call: ast.Call) -> ast.expr | None:
    """The argument that a call gives back, by whichever of its returns; None where that does not show."""
    f = local_function(facts, call.func) if isinstance(call.func, ast.Name) else None
    if f is None or f.decorator_list or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    names = {_name(n.value) for n in walk_here(f) if isinstance(n, ast.Return)}
    name = names.pop() if len(names) == 1 else None
    if name is None or not isinstance(f.body[-1], ast.Return):
        return None
    params = facts.scopes.by_node[f].params
    if name not in params:
        name = _copied(f, name)
    return argument(call, f, name) if name in params and name is not None and not _is_changed(f, name) else None


def _name(value: ast.expr | None) -> str | None:
    """The x of `x`, `x.item()`, `float(x)`."""
    while isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute) and value.func.attr in AS_NUMBER and not value.args:
            value = value.func.value
        elif isinstance(value.func, ast.Name) and value.func.id == "float" and len(value.args) == 1:
            value = value.args[0]
        else:
            return None
    return value.id if isinstance(value, ast.Name) else None


def _copied(f: ast.FunctionDef, name: str) -> str | None:
    """The t of `rt = t.clone()`, which a function that summed rt over processes gives back: nothing changes it now."""
    made = [s for s in f.body if isinstance(s, ast.Assign) and len(s.targets) == 1]
    made = [s for s in made if isinstance(s.targets[0], ast.Name) and s.targets[0].id == name]
    return _name(made[0].value) if len(made) == 1 and not _is_changed(f, name, made[0].targets[0]) else None


def _is_changed(f: ast.FunctionDef, name: str, but: ast.expr | None = None) -> bool:
    """Whether the function gives the name another value than by `but`, or changes in place what it holds."""
    for n in walk(f):
        if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) and n is not but:
            return True
        if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load) and getattr(n.value, "id", "") == name:
            return True
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == name and n.attr[-1] == "_":
            return True
        if isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFunctionDef)):
            return True
    return False

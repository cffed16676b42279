"""Saves that are each process's own: into memory, or into a file whose name no other process can have."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import argument
from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts

MEMORY = ("io.BytesIO", "io.StringIO")
OWN = ("uuid.", "tempfile.", "os.getpid")
SHARED = ("tempfile.gettempdir", "tempfile.gettempprefix")  # one folder for all processes


def saves_its_own(facts: Facts, call: ast.Call) -> bool:
    """Whether `torch.save(x, to)` is no file that the ranks would write one over the other."""
    to = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "f"), None)
    return to is not None and is_own(facts, to)


def is_own(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """Whether the value, or a part of it, comes from what gives every process another."""
    for n in walk(node):
        full = (facts.names.resolve(n.func) or "") if isinstance(n, ast.Call) else ""
        if full in MEMORY or (full.startswith(OWN) and not full.startswith(SHARED)):
            return True
        made = _made(facts, n) if depth < 4 else None
        if made and all(is_own(facts, v, depth + 1) for v in made):
            return True
    return False


def _made(facts: Facts, n: ast.AST) -> list[ast.expr] | None:
    """What a name is given, or an attribute by the constructor and its calls."""
    if isinstance(n, ast.Name):
        scope = facts.scopes.scope_of(n).lookup(n.id)
        return facts.devices.assigned(n.id, scope) if scope is not None else None
    if not (isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"):
        return None
    made: list[ast.expr] = []
    for store in facts.attributes[n.attr]:
        if not isinstance(store.ctx, ast.Load):
            s, c = facts.scopes.parents.get(store), _class_around(facts, store)
            if not isinstance(s, ast.Assign) or c is not _class_around(facts, n):
                return None
            made += _given(facts, s.value, c) or [s.value]
    return made


def _class_around(facts: Facts, node: ast.AST) -> ast.ClassDef | None:
    return next((up for up in facts.scopes.ancestors(node) if isinstance(up, ast.ClassDef)), None)


def _given(facts: Facts, value: ast.expr, c: ast.ClassDef | None) -> list[ast.expr]:
    """What the calls of a class give a parameter of its constructor."""
    f = facts.classes.methods(c).get("__init__") if c is not None else None
    if (
        c is None
        or not isinstance(f, ast.FunctionDef)
        or not isinstance(value, ast.Name)
        or value.id not in facts.scopes.by_node[f].params
    ):
        return []
    calls = [x for x in facts.walk(ast.Call) if isinstance(x.func, ast.Name) and x.func.id == c.name]
    return [v for call in calls if (v := argument(call, f, value.id, True)) is not None]

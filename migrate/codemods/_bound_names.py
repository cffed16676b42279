"""What a function that moves to the module takes along with functools.partial: names that keep what they are."""

from __future__ import annotations

import ast

from ..facts.scopes import Scope
from ..facts.script import Facts

LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
CELLS = {"super", "__class__"}  # what they mean stands with the class around


def unbindable(facts: Facts, scope: Scope, name: str, moved: ast.AST) -> str | None:
    """Why a name of the function around cannot be bound where `moved` stands."""
    if scope.is_class:
        return f"`{name}` is its class's own"
    stores = scope.stores.get(name, ())
    late = any(getattr(s, "lineno", 0) >= moved.lineno for s in stores)  # type: ignore[attr-defined]
    several = len(stores) + (name in scope.params) != 1 or any(_in_loop(facts, s) for s in stores)
    if several or late or _assigned_below(scope, name):
        return f"`{name}` may be another value by then"
    made = stores[0] if stores else None
    if isinstance(made, ast.ClassDef) or isinstance(facts.scopes.parents.get(made) if made else None, ast.Import):
        return f"`{name}` cannot be pickled itself"
    return None


def _in_loop(facts: Facts, node: ast.AST) -> bool:
    for up in facts.scopes.ancestors(node):
        if isinstance(up, LOOPS):
            return True
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
            break
    return False


def _assigned_below(scope: Scope, name: str) -> bool:
    """Whether a function within says that it assigns the name of this one."""
    return any(name in s.nonlocals or (not s.binds(name) and _assigned_below(s, name)) for s in scope.children)

"""What a result calls what it has of the runtime: by its name, or by another where the script has such a name already.

A script's own `def is_global_zero(): return dist.get_rank() == 0` would otherwise be `return is_global_zero()`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .scopes import Scope
    from .script import Facts

RUNTIME = "ptmigrate.runtime"
OF_CLASSES, OF_FUNCTIONS = ("Runtime", "pt_")


def imported_as(facts: Facts, name: str) -> str:
    """What the result calls a name of the runtime: itself, unless the script has such a name already."""
    prefix, new = OF_CLASSES if name[0].isupper() else OF_FUNCTIONS, name
    while any(_binds(facts, scope, new) for scope in facts.scopes.by_node.values()):
        new = prefix + new
    return new


def as_import(name: str, own: str) -> str:
    return name if name == own else f"{name} as {own}"


def runtime_name(facts: Facts, node: ast.AST) -> str | None:
    """The name in the runtime of what is read here: imported or, while a script is rewritten, bound nowhere as yet."""
    if not isinstance(node, ast.Name):
        return None
    full = facts.names.resolve(node) or ""
    if full.startswith(f"{RUNTIME}."):
        return full.removeprefix(f"{RUNTIME}.")
    return without_prefix(node.id) if facts.scopes.scope_of(node).lookup(node.id) is None else None


def without_prefix(name: str) -> str:
    """The name of a function in the runtime, of what a result calls it."""
    while name.startswith(OF_FUNCTIONS):
        name = name.removeprefix(OF_FUNCTIONS)
    return name


def _binds(facts: Facts, scope: Scope, name: str) -> bool:
    return name in scope.params or any(not _imports_it(facts, s) for s in scope.stores.get(name, ()))


def _imports_it(facts: Facts, store: ast.AST) -> bool:
    up = facts.scopes.parents.get(store)
    return isinstance(store, ast.alias) and isinstance(up, ast.ImportFrom) and up.module == RUNTIME

"""Names that a shape adds."""

from __future__ import annotations

import ast
from collections.abc import Container

from ...facts.script import Facts


def free(name: str, taken: Container[str]) -> str:
    """The name, with as many underscores as it needs to be nobody's yet."""
    while name in taken:
        name += "_"
    return name


def free_at(facts: Facts, node: ast.AST, name: str) -> str:
    """The same, for a name that is set and read where a node stands."""
    scope = facts.scopes.scope_of(node)
    return free(name, {*scope.stores, *scope.params, *scope.loads, *facts.scopes.module.stores})

"""The device that a function is given, or its object keeps: the Trainer's, where the options are not known there."""

from __future__ import annotations

import ast

from .nodes import walk
from .script import Facts


def given_device(facts: Facts, function: str) -> str | None:
    """A device in the function of that name: `device`, `self.device`, `self.args.device`; None where none shows."""
    found = [f for f in facts.walk(ast.FunctionDef) if f.name == function]
    if len(found) != 1:
        return None
    scope = facts.scopes.by_node[found[0]]
    for name in scope.params:
        read = next(iter(facts.scopes.reads(name, scope)), None)
        if read is not None and name not in scope.stores and _says_where(facts, read):
            return name
    own = facts.classes.holder(found[0]) is not None
    kept = (a for a in walk(found[0], ast.Attribute) if own and _is_of_self(a) and isinstance(a.ctx, ast.Load))
    return next((ast.unparse(a) for a in kept if _says_where(facts, a)), None)


def _is_of_self(a: ast.expr) -> bool:
    """`self.device`, `self.args.device`"""
    while isinstance(a, ast.Attribute):
        a = a.value
    return isinstance(a, ast.Name) and a.id == "self"


def _says_where(facts: Facts, node: ast.expr) -> bool:
    return facts.devices.is_device(node) and not facts.devices.is_number(node)

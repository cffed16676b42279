"""Devices that may be texts: `args.device`, `config["device"]`, `self.where` may be "cuda:0" on every process."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import entry
from .given_to_objects import given_to_constructor

if TYPE_CHECKING:
    from .script import Facts

DEPTH = 6  # of names, attributes and entries for one another


def may_be_text(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """Whether no expression of the file makes the device: what an option has, or what is written down as a text."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and not node.value.startswith("cpu")
    if isinstance(node, ast.IfExp):
        return any(may_be_text(facts, v, depth) for v in (node.body, node.orelse))
    if isinstance(node, ast.JoinedStr):
        return True
    if depth > DEPTH or not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return False
    values = _values(facts, node)
    if not values:
        return not isinstance(node, ast.Name)  # an option's: a name that nothing here gives a value is imported
    return any(may_be_text(facts, v, depth + 1) for v in values)


def _values(facts: Facts, node: ast.Name | ast.Attribute | ast.Subscript) -> list[ast.expr]:
    if isinstance(node, ast.Attribute):
        return facts.devices.attribute_values.get(node.attr, [])
    if isinstance(node, ast.Name):
        return _of_name(facts, node)
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    holders = _values(facts, node.value) if isinstance(node.value, (ast.Name, ast.Attribute)) else []
    found = [entry(h, key) for h in holders] if isinstance(key, str) else []
    return [] if None in found else [v for v in found if v is not None]


def _of_name(facts: Facts, node: ast.Name) -> list[ast.expr]:
    scope = facts.scopes.scope_of(node).lookup(node.id)
    if scope is None:
        return []
    values = facts.devices.assigned(node.id, scope) or []
    if node.id not in scope.params or not isinstance(scope.node, ast.FunctionDef):
        return values
    given = facts.devices.given(scope, node.id) or given_to_constructor(facts, scope.node, node.id)
    return [*values, *given]

"""The tensors of a whole data set, which no loader gives: `data.tensors`, `evaluate(model, *data.tensors)`.

A batch may have them too (`samples.tensors`); a data set shows by what made it, or by the loader that is given it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import argument_at
from .given_to_objects import given_to_constructor
from .held import DATA, is_data

if TYPE_CHECKING:
    from .script import Facts


def is_whole_data(facts: Facts, node: ast.expr | None) -> bool:
    """Whether an expression is such tensors, one of them, or all of them one after another."""
    while isinstance(node, (ast.Starred, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Attribute) and node.attr == "tensors" and _is_data_set(facts, node.value)


def starred(call: ast.AST) -> ast.Starred | None:
    """What a call is given one after another, where what its parameters get does not show otherwise."""
    return next((a for a in call.args if isinstance(a, ast.Starred)), None) if isinstance(call, ast.Call) else None


def _is_data_set(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    if is_data(facts, node) or _is_loaded(facts, node):
        return True
    return depth < 4 and any(_is_data_set(facts, v, depth + 1) for v in _values(facts, node))


def _is_loaded(facts: Facts, node: ast.expr) -> bool:
    """`data` beside `DataLoader(data)`, `RandomSampler(data)`"""
    for call in facts.walk(ast.Call):
        full = facts.names.resolve(call.func) or ""
        if full.startswith(DATA) and not full.endswith(".TensorDataset"):
            given = argument_at(call, "data_source" if full.endswith("Sampler") else "dataset", 0)
            if given is not None and _is_same(facts, given, node):
                return True
    return False


def _is_same(facts: Facts, one: ast.expr, other: ast.expr) -> bool:
    if isinstance(one, ast.Name) and isinstance(other, ast.Name) and one.id == other.id:
        scopes = facts.scopes
        return scopes.scope_of(one).lookup(one.id) is scopes.scope_of(other).lookup(other.id)
    return isinstance(one, ast.Attribute) and ast.unparse(one) == ast.unparse(other)


def _values(facts: Facts, node: ast.expr) -> list[ast.expr]:
    """What an attribute of self is set to, or what callers give a parameter."""
    if isinstance(node, ast.Attribute):
        return facts.devices.attribute_values.get(node.attr, []) if facts.classes.is_self(node.value) else []
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    if scope is None or not isinstance(node, ast.Name) or node.id not in scope.params or node.id in scope.stores:
        return []
    f = scope.node
    made = given_to_constructor(facts, f, node.id) if isinstance(f, ast.FunctionDef) else []
    return made or facts.devices.given(scope, node.id) or []

"""Samples that a script takes once, outside of its loops over batches: nothing but the script places them.

`fixed, _ = next(iter(loader))`, `fixed = dataset[0][0]`, `for x in dataset:`
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .held import is_data, is_held
from .loops import LOOPS
from .tensor_methods import root
from .whole_data import is_whole_data

if TYPE_CHECKING:
    from .script import Facts


def is_taken_once(facts: Facts, node: ast.expr) -> bool:
    """Whether a name, or a part of what it names, is such a sample by all that gives it a value."""
    if isinstance(node, ast.Subscript) and is_held(facts, node):
        return True
    name = root(node) if isinstance(node, (ast.Name, ast.Subscript)) else None
    scope = facts.scopes.scope_of(name).lookup(name.id) if isinstance(name, ast.Name) else None
    if scope is None or name is None or name.id in scope.params:
        return False
    stores = facts.placed.reaching(name, scope)
    return bool(stores) and all(_is_taken(facts, store) for store in stores)


def _is_taken(facts: Facts, store: ast.AST) -> bool:
    up = facts.scopes.parents.get(store)
    while isinstance(up, (ast.Tuple, ast.List, ast.Starred)):
        up = facts.scopes.parents.get(up)
    if isinstance(up, (ast.For, ast.comprehension)):
        return up not in facts.loops.hot_loops and is_data(facts, up.iter)
    value = up.value if isinstance(up, ast.Assign) else None
    if is_whole_data(facts, value):
        return True
    while isinstance(value, ast.Subscript):
        if is_held(facts, value):
            return True
        value = value.value
    return isinstance(value, ast.Call) and _draws(value) and not _in_loop(facts, value)


def _draws(call: ast.Call) -> bool:
    """`next(iter(loader))`, `iter(loader).next()`"""
    if isinstance(call.func, ast.Name):
        return call.func.id == "next"
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("next", "__next__") and not call.args


def _in_loop(facts: Facts, node: ast.AST) -> bool:
    return any(isinstance(up, LOOPS) for up in facts.scopes.ancestors(node))

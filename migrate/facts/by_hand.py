"""Batches that the rounds of a loop cut themselves: `xb = X[perm[i : i + 32]]` of an X that a function is given.

It is no batch that a loader gave: nothing but the script moves it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import argument
from .nodes import FUNCTIONS, LOOPS, walk

if TYPE_CHECKING:
    from .script import Facts


def is_cut_by_hand(facts: Facts, node: ast.expr) -> bool:
    """Whether a part of what is given from outside of a training loop is chosen by what the loop counts."""
    loop = _loop(facts, node)
    if loop is None or not isinstance(node, ast.Subscript):
        return False
    chosen = {n.id for n in walk(node.slice, ast.Name)}
    counted = {n.id for n in walk(loop, ast.Name) if isinstance(n.ctx, ast.Store)}
    return bool(chosen & counted) and (_is_given(facts, node.value) or _is_kept(facts, node.value))


def cut_by_hand(facts: Facts, f: ast.AST) -> set[str]:
    """The names of what a function cuts its batches from: those stay where they are."""
    return {n.value.id for n in walk(f, ast.Subscript) if isinstance(n.value, ast.Name) and is_cut_by_hand(facts, n)}


def _loop(facts: Facts, node: ast.AST) -> ast.AST | None:
    """The loop around it in the same function whose every round is a step."""
    for up in facts.scopes.ancestors(node):
        if isinstance(up, (*FUNCTIONS, ast.Lambda)):
            return None
        if isinstance(up, LOOPS) and up in facts.loops.hot_loops:
            return up
    return None


def _is_given(facts: Facts, node: ast.expr) -> bool:
    """A parameter of the loop's own function, for which not all its callers have what the runtime places."""
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    if scope is None or not isinstance(node, ast.Name) or node.id not in scope.params or node.id in scope.stores:
        return False
    f = scope.node
    holder = facts.classes.holder(f)
    if not isinstance(f, ast.FunctionDef) or holder in facts.classes.modules:
        return False
    uses = [u for u in facts.classes.uses_of(f) if f not in facts.scopes.ancestors(u)]
    given = [argument(u, f, node.id, holder is not None) if isinstance(u, ast.Call) else None for u in uses]
    return not given or not all(v is not None and facts.placed.by_runtime(v) for v in given)


def _is_kept(facts: Facts, node: ast.expr) -> bool:
    """`self.X`, which a class that is no module is given once, when it is made."""
    c = next((u for u in facts.scopes.ancestors(node) if isinstance(u, ast.ClassDef)), None)
    if not isinstance(node, ast.Attribute) or c is None or c in facts.classes.modules:
        return False
    values = [v for v in facts.devices.attribute_values.get(node.attr, ()) if c in facts.scopes.ancestors(v)]
    init = facts.classes.methods(c).get("__init__")
    made = init is not None and bool(values) and all(init in facts.scopes.ancestors(v) for v in values)
    return made and facts.classes.is_self(node.value)

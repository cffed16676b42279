"""Copies of whole networks that an object keeps: `self.ema = deepcopy(model)` of a class that is no module itself.

The Trainer places the modules of its Module; what a plain object holds it does not see.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts


def kept_copies(facts: Facts, c: ast.ClassDef) -> dict[str, ast.expr]:
    """The attributes of a class that hold such copies, with them; none of a module, or of one that trains."""
    if "deepcopy" not in facts.text.text or c in facts.classes.modules:
        return {}
    nodes = list(walk(c))
    if any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in nodes):
        return {}
    found = {
        t.attr: s.value
        for s in nodes
        if isinstance(s, ast.Assign) and _is_copy(s.value)
        for t in s.targets
        if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) and t.value.id == "self"
    }
    return {a: copy for a, copy in found.items() if any(_asks_network(n, a) for n in nodes)}


def is_kept_copy(facts: Facts, node: ast.expr) -> bool:
    """The `self.ema` of such a class, inside it, and the copy that it is given."""
    if "deepcopy" not in facts.text.text:
        return False
    if isinstance(node, ast.Call) and _is_copy(node):
        s = facts.scopes.statement_of(node)
        return isinstance(s, ast.Assign) and any(is_kept_copy(facts, t) for t in s.targets)
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"):
        return False
    holder = next((u for u in facts.scopes.ancestors(node) if isinstance(u, ast.ClassDef)), None)
    return holder is not None and node.attr in kept_copies(facts, holder)


def _is_copy(value: ast.expr) -> bool:
    """`deepcopy(model)`, `copy.deepcopy(model).eval()`"""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr != "deepcopy":
        value = value.func.value
    called = value.func if isinstance(value, ast.Call) else None
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) == "deepcopy"


def _asks_network(n: ast.AST, name: str) -> bool:
    asks = ("parameters", "named_parameters", "buffers", "named_buffers", "state_dict", "eval", "train")
    return (
        isinstance(n, ast.Attribute) and n.attr in asks and isinstance(n.value, ast.Attribute) and n.value.attr == name
    )

"""T2: a parameter that is kept as a network is no tensor, though it is moved as one is.

`self.teacher = teacher.to(device).eval()`, `self.teacher(x)`
"""

from __future__ import annotations

import ast

from ..facts.back_from_cpu import GIVE_THEMSELVES, MODULE_METHODS
from ..facts.nodes import walk
from ..facts.script import Facts


def is_kept_as_network(facts: Facts, f: ast.AST, name: str) -> bool:
    """Whether a function moves a name, and asks of it, or of the attribute that keeps it, what a network alone has."""
    for n in walk(f, ast.Name):
        if n.id != name or not isinstance(n.ctx, ast.Load):
            continue
        node: ast.AST = n
        up = facts.scopes.parents.get(node)
        while isinstance(up, ast.Attribute) or (isinstance(up, ast.Call) and up.func is node):
            if isinstance(up, ast.Attribute) and up.attr in MODULE_METHODS:
                return True
            if isinstance(up, ast.Attribute) and up.attr not in GIVE_THEMSELVES:
                break
            node, up = up, facts.scopes.parents.get(up)
        kept = [t.attr for t in up.targets if isinstance(t, ast.Attribute)] if isinstance(up, ast.Assign) else []
        if any(_is_called(facts, a) for k in kept for a in facts.attributes.get(k, ())):
            return True
    return False


def _is_called(facts: Facts, a: ast.Attribute) -> bool:
    """`self.teacher(x)`, `self.teacher.parameters()`"""
    up = facts.scopes.parents.get(a)
    return (isinstance(up, ast.Call) and up.func is a) or (isinstance(up, ast.Attribute) and up.attr in MODULE_METHODS)

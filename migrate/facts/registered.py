"""What a constructor registers with its module."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .script import Facts


def is_registered(facts: Facts, node: ast.expr) -> bool:
    """What a constructor hands to `self.register_buffer(...)` or keeps as a Parameter moves with its module."""
    parents: dict[ast.AST, ast.AST] = facts.scopes.parents
    child: ast.AST = node
    up = parents.get(node)
    while isinstance(up, ast.Attribute) or (isinstance(up, ast.Call) and up.func is child):
        child, up = up, parents.get(up)
    if isinstance(up, ast.keyword):
        child, up = up, parents.get(up)
    if not isinstance(up, ast.Call) or child is up.func:
        return False
    s = parents.get(up)
    f = next((u for u in facts.scopes.ancestors(up) if isinstance(u, ast.FunctionDef)), None)
    if f is None or f.name != "__init__" or facts.classes.holder(f) not in facts.classes.modules:
        return False
    if facts.names.resolve(up.func) == "torch.nn.Parameter":
        if isinstance(s, ast.Call) and isinstance(s.func, ast.Attribute) and s.func.attr == "register_parameter":
            return _is_self(s.func.value)
        targets = s.targets if isinstance(s, ast.Assign) else []
        return bool(targets) and all(isinstance(t, ast.Attribute) and _is_self(t.value) for t in targets)
    func = up.func
    return isinstance(func, ast.Attribute) and func.attr == "register_buffer" and _is_self(func.value)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"

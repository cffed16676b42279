"""What a script moves because another tensor is on a card: it says so itself that this one may be elsewhere.

`triplets = self.selector.get(out, y)`, `if out.is_cuda: triplets = triplets.cuda()`
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .tensor_methods import METHODS

if TYPE_CHECKING:
    from .script import Facts

MOVES = ("cuda", "to")


def is_moved_beside(facts: Facts, node: ast.expr) -> bool:
    """Whether a name of what some function gave is moved under a question for another tensor's card."""
    if "is_cuda" not in facts.attributes or not isinstance(node, ast.Name):
        return False
    move = facts.scopes.parents.get(node)
    if not (isinstance(move, ast.Attribute) and move.attr in MOVES) or not _is_given(facts, node):
        return False
    below: ast.AST = move
    for up in facts.scopes.ancestors(move):
        if isinstance(up, (ast.FunctionDef, ast.Lambda)):
            return False
        if isinstance(up, (ast.If, ast.IfExp)) and (below is getattr(up, "body", None) or below in _block(up)):
            test = up.test
            if isinstance(test, ast.Attribute) and test.attr == "is_cuda" and ast.unparse(test.value) != node.id:
                return True
        below = up
    return False


def _block(up: ast.If | ast.IfExp) -> list[ast.stmt]:
    return up.body if isinstance(up, ast.If) else []


def _is_given(facts: Facts, name: ast.Name) -> bool:
    """Whether what is there is what a call gave whose function does not show."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    values = facts.devices.unpacked(name.id, scope) or [] if scope is not None else []
    calls = [v for v in values if isinstance(v, ast.Call) and facts.devices.moved(v) is None]
    shown = (c for c in calls if facts.names.resolve(c.func) or getattr(c.func, "attr", "") in METHODS)
    return bool(calls) and not any(True for _ in shown)

"""`total = total + loss.item()` is `total += loss.item()`, of plain numbers: the lift brings such sums together."""

from __future__ import annotations

import ast

from ...facts.script import Facts
from .edits import Edits

COUNTS = ("item", "numel", "nelement", "size")  # of these, size() only with a dimension
BUILTINS = ("len", "int", "float")


def add_in_place(facts: Facts) -> str | None:
    """The text with such sums as augmented assignments; None where there are none."""
    edits = Edits(facts)
    for s in facts.walk(ast.Assign):
        added = _added(s)
        if added is not None and _in_loop(facts, s) and _always_number(facts, s.targets[0]):  # type: ignore[arg-type]
            name = facts.text.get(s.targets[0])
            edits.replace(facts.text.span(s)[0], facts.text.span(added)[0], f"{name} += ")
    return edits.done() if edits.spans else None


def _added(s: ast.Assign) -> ast.expr | None:
    """The e of `x = x + e`, where it is a number and stands on the statement's end."""
    value, target = s.value, s.targets[0]
    if len(s.targets) > 1 or not isinstance(target, ast.Name) or not isinstance(value, ast.BinOp):
        return None
    mine = isinstance(value.left, ast.Name) and value.left.id == target.id and isinstance(value.op, ast.Add)
    plain = (value.right.end_lineno, value.right.end_col_offset) == (s.end_lineno, s.end_col_offset)
    return value.right if mine and plain and _is_number(value.right) else None


def _is_number(e: ast.expr) -> bool:
    """A Python number, whatever its names are."""
    if isinstance(e, ast.Constant):
        return type(e.value) in (int, float)
    if isinstance(e, ast.BinOp):
        return _is_number(e.left) and _is_number(e.right)
    if isinstance(e, ast.UnaryOp):
        return isinstance(e.op, (ast.USub, ast.UAdd)) and _is_number(e.operand)
    if not isinstance(e, ast.Call):
        return False
    if isinstance(e.func, ast.Name):
        return e.func.id in BUILTINS
    named = isinstance(e.func, ast.Attribute) and e.func.attr in COUNTS
    return named and (bool(e.args) if e.func.attr == "size" else not e.args)  # type: ignore[attr-defined]


def _in_loop(facts: Facts, s: ast.stmt) -> bool:
    return any(isinstance(up, (ast.For, ast.While)) for up in facts.scopes.ancestors(s))


def _always_number(facts: Facts, name: ast.Name) -> bool:
    """Whether the variable is given nothing but numbers."""
    scope = facts.scopes.scope_of(name)
    if scope.lookup(name.id) is not scope or name.id in scope.params:
        return False
    for store in scope.stores[name.id]:
        up = facts.scopes.parents.get(store)
        if isinstance(up, ast.Assign) and up.targets == [store]:
            if not (_is_number(up.value) or _added(up) is not None):
                return False
        elif not (isinstance(up, ast.AugAssign) and _is_number(up.value)):
            return False
    return True

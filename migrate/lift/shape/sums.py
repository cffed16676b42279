"""`total = total + loss.item()` is `total += loss.item()`: the lift brings such sums together."""

from __future__ import annotations

import ast

from ...facts.loops import last_part
from ...facts.nodes import walk
from ...facts.script import Facts
from ...facts.unplaced import runs_backward
from .edits import Edits

COUNTS = ("item", "numel", "nelement", "size")  # of these, size() only with a dimension
BUILTINS = ("len", "int", "float")
SHOWS = ("print", "format", "item", "float", "int", "round")


def add_in_place(facts: Facts) -> str | None:
    """The text with such sums as augmented assignments; None where there are none."""
    edits = Edits(facts)
    for s in facts.walk(ast.Assign):
        added = _added(s)
        if added is None or not is_of_training(facts, s):
            continue
        name = s.targets[0]
        assert isinstance(name, ast.Name)
        if (_is_number(added) and _always_number(facts, name)) or _begins_at_number(facts, s, name):
            edits.replace(*facts.text.span(s), f"{facts.text.get(name)} += {facts.text.get(added)}")
    return edits.done() if edits.spans else None


def _added(s: ast.Assign) -> ast.expr | None:
    """The e of `x = x + e` and of `x = e + x`."""
    value, target = s.value, s.targets[0]
    if len(s.targets) > 1 or not isinstance(target, ast.Name) or not isinstance(value, ast.BinOp):
        return None
    mine = [isinstance(e, ast.Name) and e.id == target.id for e in (value.left, value.right)]
    if not isinstance(value.op, ast.Add) or sum(mine) != 1 or s.lineno != s.end_lineno:
        return None
    return value.right if mine[0] else value.left


def _begins_at_number(facts: Facts, s: ast.Assign, name: ast.Name) -> bool:
    """Whether a sum of whatever it is, a tensor as well, begins with a number above its loop, and the loop does no more
    with it than add: nothing else has the object that `+=` changes.
    """
    scope, loops = facts.scopes.scope_of(name), (ast.For, ast.While)
    if scope.lookup(name.id) is not scope or name.id in scope.params:
        return False
    loop = next(up for up in facts.scopes.ancestors(s) if isinstance(up, loops))
    if loop not in facts.loops.hot_loops:
        return False  # of a network's layers, say: what is differentiated stays as it is
    block = facts.scopes.block_of(loop)
    above = [b for b in block[: block.index(loop)] if isinstance(b, ast.Assign) and _gives(b, name.id)]
    if not above or not _is_number(above[-1].value):
        return False
    inside = [n for n in walk(loop, ast.Name) if n.id == name.id]
    own = [n for n in inside if facts.scopes.statement_of(n) is s]
    return len(own) == 2 and all(n in own or _is_shown(facts, n) for n in inside)


def _is_shown(facts: Facts, n: ast.Name) -> bool:
    """Whether a name is read for a text or a number alone, which are of their own."""
    for up in facts.scopes.ancestors(n):
        if isinstance(up, ast.FormattedValue) or (isinstance(up, ast.Call) and last_part(up.func) in SHOWS):
            return isinstance(n.ctx, ast.Load)
        if isinstance(up, ast.stmt):
            break
    return False


def _gives(s: ast.Assign, name: str) -> bool:
    return any(isinstance(t, ast.Name) and t.id == name for t in s.targets)


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


def is_of_training(facts: Facts, s: ast.stmt) -> bool:
    """Whether a statement stands in a loop over batches, in what that calls, or in one around it: the lift moves it."""
    loops = [up for up in facts.scopes.ancestors(s) if isinstance(up, (ast.For, ast.While))]
    if not loops:
        return False
    if facts.loops.hot(s) is not None or any(n in facts.loops.hot_loops for up in loops for n in walk(up)):
        return True
    return any(runs_backward(facts, up) for up in loops)


def _always_number(facts: Facts, name: ast.Name) -> bool:
    """Whether the variable is given nothing but numbers."""
    scope = facts.scopes.scope_of(name)
    if scope.lookup(name.id) is not scope or name.id in scope.params:
        return False
    for store in scope.stores[name.id]:
        up = facts.scopes.parents.get(store)
        if isinstance(up, ast.Assign) and up.targets == [store]:
            added = _added(up)
            if not (_is_number(up.value) or (added is not None and _is_number(added))):
                return False
        elif not (isinstance(up, ast.AugAssign) and _is_number(up.value)):
            return False
    return True

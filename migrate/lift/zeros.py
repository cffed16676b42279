"""Values that are nothing but zeros: where a sum over samples begins."""

from __future__ import annotations

import ast
import re

from ..facts.arguments import given_to
from ..facts.script import Facts

OF_ZEROS = ("torch.zeros", "torch.zeros_like", "numpy.zeros", "numpy.zeros_like")
OF_VALUES = ("torch.tensor", "torch.as_tensor", "numpy.array", "numpy.float32", "numpy.float64")
MOVES = ("to", "cuda", "cpu", "float", "double", "long")
IN_PLACE = re.compile(r"[a-z]\w*[a-z0-9]_")
FILLS = ("fill",)
FILLED = ("torch.fill_", "torch.nn.init.constant_", "numpy.copyto")


def is_zeros(facts: Facts, value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return type(value.value) in (int, float) and value.value == 0
    if isinstance(value, (ast.List, ast.Tuple)):
        return all(is_zeros(facts, e) for e in value.elts)
    if isinstance(value, ast.Dict):
        return all(k is not None for k in value.keys) and all(is_zeros(facts, v) for v in value.values)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return isinstance(value.left, ast.List) and is_zeros(facts, value.left)
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute) and value.func.attr in MOVES and isinstance(value.func.value, ast.Call):
        return is_zeros(facts, value.func.value)
    if isinstance(value.func, ast.Name) and value.func.id in ("float", "int"):
        return not value.args or is_zeros(facts, value.args[0])
    full = facts.names.resolve(value.func)
    return full in OF_ZEROS or (full in OF_VALUES and bool(value.args) and is_zeros(facts, value.args[0]))


def zeroed(facts: Facts, s: ast.AST) -> ast.Name | None:
    """The x that a statement sets to zero in place: `x.zero_()`, `x.fill_(0)`, `x[:] = 0`, `x *= 0`."""
    of: ast.expr
    if isinstance(s, ast.AugAssign):
        of, zero = s.target, isinstance(s.op, ast.Mult) and is_zeros(facts, s.value)
    elif isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Subscript):
        of, zero = s.targets[0].value, _is_all(s.targets[0].slice) and is_zeros(facts, s.value)
    elif isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
        of, zero = _zeroed_by(facts, s.value)
    else:
        return None
    return of if zero and isinstance(of, ast.Name) else None


def is_zeroed(facts: Facts, name: ast.Name) -> bool:
    """Whether a name stands where its value is set to zero in place."""
    return zeroed(facts, facts.scopes.statement_of(name)) is name


def is_read(facts: Facts, name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load) and not is_zeroed(facts, name)


def changed(facts: Facts, name: ast.Name) -> bool:
    """Whether what a name holds is given other values in place: `x.div_(2)`, `x[0] = 1`."""
    at: ast.Name | ast.Subscript = name
    up = facts.scopes.parents.get(at)
    while isinstance(up, ast.Subscript) and up.value is at:
        at, up = up, facts.scopes.parents.get(up)
    if at is not name and not isinstance(at.ctx, ast.Load):
        return True
    if (
        not isinstance(up, ast.Attribute)
        or up.value is not at
        or not isinstance(facts.scopes.parents.get(up), ast.Call)
    ):
        return False
    return up.attr in FILLS or IN_PLACE.fullmatch(up.attr) is not None


def _zeroed_by(facts: Facts, call: ast.Call) -> tuple[ast.expr, bool]:
    """What a call changes in place, and whether to zeros."""
    full, given = facts.names.resolve(call.func), given_to(call)
    if full in ("torch.zero_", "torch.nn.init.zeros_"):
        return (given or [call])[0], len(given) == 1
    if full in FILLED:
        return (given or [call])[0], len(given) == 2 and is_zeros(facts, given[1])
    if full is not None or not isinstance(call.func, ast.Attribute):
        return call, False
    if call.func.attr == "zero_":
        return call.func.value, not given
    fills = call.func.attr in ("fill_", "fill", "mul_", "copy_")
    return call.func.value, fills and len(given) == 1 and is_zeros(facts, given[0])


def _is_all(at: ast.expr) -> bool:
    """`x[:]`, `x[...]`, `x[:, :]`"""
    if isinstance(at, ast.Tuple):
        return all(map(_is_all, at.elts))
    whole = isinstance(at, ast.Slice) and at.lower is at.upper is at.step is None
    return whole or (isinstance(at, ast.Constant) and at.value is Ellipsis)

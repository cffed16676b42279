"""Two values element by element: whether the samples of one stand against those of the other."""

from __future__ import annotations

import ast

from .batch_values import Value, replace
from .nodes import walk

VIEWS = ("view", "reshape", "unsqueeze", "contiguous", "expand", "flatten", "float", "long")


def spread_apart(left: ast.expr, a: Value, right: ast.expr, b: Value) -> bool:
    """`y[:, None] == y`: the samples of one stand against those of the other."""
    if not a.kind == b.kind == "batch" or a.apart == b.apart or a.dim != b.dim:
        return False
    plain = b if a.apart else a
    same = _viewed(left) == _viewed(right) and _added(left) != _added(right)
    return plain.flat or plain.vector or same


def is_along(matrix: Value, vector: Value) -> bool:
    """`q.t() / q.sum(1)`: a number a sample goes along the last dimension, which is theirs."""
    return matrix.dim == 1 and matrix.rank == 2 and vector.dim == 0 and vector.vector


def distance(call: ast.Call, of: Value) -> Value:
    """What pairwise_distance gives: one number a sample, of the shape (n,), or with `keepdim` (n, 1)."""
    keeps = next((k.value for k in call.keywords if k.arg == "keepdim"), call.args[-1] if call.args else None)
    kept = isinstance(keeps, ast.Constant) and keeps.value is True
    return replace(of, apart=kept, vector=not kept) if of.kind == "batch" and of.dim == 0 and not of.holds else of


def _added(e: ast.expr) -> int:
    """How many dimensions of one `h[:, None, :]`, `h.unsqueeze(1)` and `h.view(-1, 1)` have more than h."""
    calls = [n.func.attr for n in walk(e, ast.Call) if isinstance(n.func, ast.Attribute)]
    indices = (
        i for n in walk(e, ast.Subscript) for i in (n.slice.elts if isinstance(n.slice, ast.Tuple) else [n.slice])
    )
    nones = sum(isinstance(i, ast.Constant) and i.value is None for i in indices)
    return nones + sum(name in ("unsqueeze", "view", "reshape") for name in calls)


def _viewed(e: ast.expr) -> str:
    """The source of what `y[:, None]`, `y.view(-1, 1)` and `y.unsqueeze(1)` are views of."""
    while True:
        if isinstance(e, ast.Subscript):
            e = e.value
        elif isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in VIEWS:
            e = e.func.value
        else:
            return ast.unparse(e)

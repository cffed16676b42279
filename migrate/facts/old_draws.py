"""`batches.next()` of what `iter()` gave: the iterators of torch's loaders have had no such method since torch 1.13."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .nodes import FUNCTIONS, Nodes

SCOPES = (*FUNCTIONS, ast.Lambda)


def old_draws(nodes: Nodes) -> Iterator[ast.Call]:
    """The calls that are `next(batches)` today; none of a method `next` of the file's own."""
    calls = [c for c in nodes.calls.get("next", ()) if is_draw(c)]
    given = _given(nodes) if calls else {}
    for call in calls:
        of: ast.expr = call.func.value  # type: ignore[attr-defined]
        if _is_iter(of) or (isinstance(of, (ast.Name, ast.Attribute)) and _is_iterator(nodes, of, given)):
            yield call


def is_draw(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and not call.args and not call.keywords


def _is_iter(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "iter"


def _is_iterator(nodes: Nodes, of: ast.Name | ast.Attribute, given: dict[str, list[_Given]]) -> bool:
    """Whether a name or an attribute is given nothing but iterators, or None, where it is the same one."""
    values = given.get(ast.unparse(of), [])
    if isinstance(of, ast.Name):
        homes = _homes(nodes, of)
        for home in homes:
            here = [value for value, node in values if next(iter(_homes(nodes, node))) is home]
            if here or _takes(home, of.id):
                return _only_iterators(here)
        return False
    owner = nodes.class_of(of)
    return _only_iterators([value for value, node in values if nodes.class_of(node) is owner])


def _only_iterators(values: list[ast.expr | None]) -> bool:
    known = [v for v in values if not (isinstance(v, ast.Constant) and v.value is None)]
    return bool(known) and all(v is not None and _is_iter(v) for v in known)


def _homes(nodes: Nodes, node: ast.AST) -> list[ast.AST]:
    """The functions around a name, innermost first, and the module."""
    return [*(up for up in nodes.ancestors(node) if isinstance(up, SCOPES)), nodes.tree]


def _takes(home: ast.AST, name: str) -> bool:
    if not isinstance(home, SCOPES):
        return False
    a = home.args
    return any(p is not None and p.arg == name for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg))


_Given = tuple[ast.expr | None, ast.AST]  # a value, None for what does not show, and where it is given


def _given(nodes: Nodes) -> dict[str, list[_Given]]:
    """What the file's names and attributes are given, by their text."""
    found: dict[str, list[_Given]] = {}
    for kind in (ast.Name, ast.Attribute):
        for target in nodes.of(kind):
            if isinstance(target.ctx, ast.Store):  # type: ignore[attr-defined]
                found.setdefault(ast.unparse(target), []).append((_value(nodes, target), target))
    return found


def _value(nodes: Nodes, target: ast.AST) -> ast.expr | None:
    up = nodes.parents.get(target)
    if isinstance(up, ast.Assign) or (isinstance(up, ast.NamedExpr) and up.target is target):
        return up.value
    if not isinstance(up, (ast.Tuple, ast.List)):
        return None
    s = nodes.parents.get(up)
    if not (
        isinstance(s, ast.Assign) and isinstance(s.value, (ast.Tuple, ast.List)) and len(up.elts) == len(s.value.elts)
    ):
        return None
    return next((v for t, v in zip(up.elts, s.value.elts, strict=True) if t is target), None)

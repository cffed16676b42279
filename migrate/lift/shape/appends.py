"""`losses += [loss.item()]` is `losses.append(loss.item())`, of a list: what is put in is looked at by itself."""

from __future__ import annotations

import ast

from ...facts.script import Facts
from .edits import Edits
from .sums import is_of_training


def append_in_place(facts: Facts) -> str | None:
    """The text with such additions as calls; None where there are none."""
    edits = Edits(facts)
    for s in facts.walk(ast.AugAssign):
        one = _one_element(s)
        if one is None or not isinstance(s.target, ast.Name) or not _always_list(facts, s.target):
            continue
        looped = any(isinstance(up, (ast.For, ast.While)) for up in facts.scopes.ancestors(s))
        if is_of_training(facts, s) or not looped:
            edits.replace_node(s, f"{s.target.id}.append({facts.text.get(one)})")
    return edits.done() if edits.spans else None


def _one_element(s: ast.AugAssign) -> ast.expr | None:
    """The e of `x += [e]`."""
    if not (isinstance(s.op, ast.Add) and isinstance(s.value, ast.List) and len(s.value.elts) == 1):
        return None
    e = s.value.elts[0]
    return None if isinstance(e, (ast.Starred, ast.NamedExpr, ast.Yield)) else e


def _always_list(facts: Facts, name: ast.Name) -> bool:
    """Whether the variable is given nothing but lists that are made there."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    if scope is None or name.id in scope.params:
        return False
    for store in scope.stores[name.id]:
        up = facts.scopes.parents.get(store)
        added = isinstance(up, ast.AugAssign) and _one_element(up) is not None
        made = isinstance(up, ast.Assign) and store in up.targets and isinstance(up.value, ast.List)
        if not (added or made or _in_pairs(facts, store)):
            return False
    return True


def _in_pairs(facts: Facts, store: ast.AST) -> bool:
    """The `b` of `a, b = [], []`."""
    up = facts.scopes.parents.get(store)
    s = facts.scopes.parents.get(up) if isinstance(up, ast.Tuple) else None
    if not isinstance(up, ast.Tuple) or not isinstance(s, ast.Assign) or not isinstance(s.value, ast.Tuple):
        return False
    values = s.value.elts
    return up in s.targets and len(values) == len(up.elts) and isinstance(values[up.elts.index(store)], ast.List)  # type: ignore[arg-type]

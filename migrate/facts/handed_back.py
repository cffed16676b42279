"""What functions hand back that make an object: `criterion = build_loss(args)`, `net, criterion = build()`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from .back_from_cpu import itself
from .nodes import walk
from .other_files import OtherFile, found_there

if TYPE_CHECKING:
    from .script import Facts

DEPTH = 6  # of functions that call functions, and of names for names


class Made(NamedTuple):
    """An expression that makes it, or a class or function itself; `file` where that is another one, `f` where it is a
    function.
    """

    facts: Facts
    e: ast.expr
    file: OtherFile | None
    f: ast.FunctionDef | ast.Lambda | None = None


def handed_back(facts: Facts, e: ast.expr, file: OtherFile | None = None, depth: int = 0) -> list[Made]:
    """What a name or a call may be by the functions that give it, here or in another file; none where none does."""
    if depth > DEPTH:
        return []
    e = itself(e)
    if isinstance(e, ast.Call):
        return [m for home, v, where in _returned(facts, e, file) for m in _followed(home, v, where, depth)]
    if not isinstance(e, ast.Name):
        return []
    scope = facts.scopes.scope_of(e).lookup(e.id)
    values = _given(facts, scope.stores[e.id]) if scope is not None else []
    return [m for v, at in values for m in _element(facts, v, at, file, depth)]


def _given(facts: Facts, stores: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, int | None]]:
    """What assignments give a name, and at which place of it."""
    for store in stores:
        up = facts.scopes.parents.get(store)
        of = facts.scopes.parents.get(up) if isinstance(up, ast.Tuple) else up
        if not isinstance(of, (ast.Assign, ast.AnnAssign)) or of.value is None:
            continue
        if isinstance(up, ast.Tuple):
            at = next(i for i, part in enumerate(up.elts) if part is store)
            if not any(isinstance(x, ast.Starred) for x in up.elts[:at]):
                yield of.value, at
        elif isinstance(of, ast.AnnAssign) or store in of.targets:
            yield of.value, None


def _element(facts: Facts, v: ast.expr, at: int | None, file: OtherFile | None, depth: int) -> list[Made]:
    if at is None:
        return handed_back(facts, v, file, depth + 1) if isinstance(v, ast.Call) else []
    if not isinstance(v, ast.Call):
        return []
    found = []
    for home, back, where in _returned(facts, v, file):
        if isinstance(back, ast.Tuple) and at < len(back.elts):
            found += _followed(home, back.elts[at], where, depth)
    return found


def _followed(facts: Facts, v: ast.expr, file: OtherFile | None, depth: int) -> list[Made]:
    """What is handed back, where a name stands for it: by all that the name is given."""
    if isinstance(v, ast.IfExp):
        return [m for side in (v.body, v.orelse) for m in _followed(facts, side, file, depth)]
    if isinstance(v, ast.Name):
        scope = facts.scopes.scope_of(v).lookup(v.id)
        values = list(_given(facts, scope.stores[v.id])) if scope is not None else []
        inner = [f for f in (scope.stores[v.id] if scope is not None else ()) if isinstance(f, ast.FunctionDef)]
        if inner:
            return [Made(facts, v, file, f) for f in inner]
        direct = [x for x, at in values if at is None and x is not v]
        found = [m for x in direct for m in _followed(facts, x, file, depth + 1)] if depth < DEPTH else []
        return found + [m for x, at in values if at is not None for m in _element(facts, x, at, file, depth + 1)]
    if isinstance(v, ast.Call) and _returned(facts, v, file):
        return handed_back(facts, v, file, depth + 1)  # nothing, of one that calls itself
    return [Made(facts, v, file, v if isinstance(v, ast.Lambda) else None)]


def _returned(facts: Facts, call: ast.Call, file: OtherFile | None) -> list[tuple[Facts, ast.expr, OtherFile | None]]:
    """What a function of this file, a method of the object itself, or a function of another file returns."""
    func, f = call.func, None
    home = facts
    if isinstance(func, ast.Name):
        scope = facts.scopes.scope_of(func).lookup(func.id)
        stores = scope.stores[func.id] if scope is not None else []
        f = stores[0] if len(stores) == 1 else None
    elif isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self":
        c = next((up for up in facts.scopes.ancestors(call) if isinstance(up, ast.ClassDef)), None)
        f = facts.classes.methods(c).get(func.attr) if c is not None else None
    if not isinstance(f, ast.FunctionDef) and facts.others:
        there = found_there(facts, func)
        if there is not None:
            file, home, f = there
    if not isinstance(f, ast.FunctionDef):
        return []
    own = home.scopes.by_node[f]
    found = [n.value for n in walk(f, ast.Return) if home.scopes.scope_of(n) is own]
    return [(home, v, file) for v in found if v is not None]

"""What a name of a loop or a comprehension is an element of: `outputs` of `for o, t in zip(outputs, targets)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts

Around = ast.For | ast.AsyncFor | ast.comprehension


def gone_through(facts: Facts, name: ast.Name) -> ast.expr | None:
    """What one loop or comprehension alone goes through for a name, other than batches; None where more bind it."""
    around: Around | None = facts.scopes.generator_of(name)
    if around is None:
        scope = facts.scopes.scope_of(name).lookup(name.id)
        stores = scope.stores.get(name.id, []) if scope is not None and name.id not in scope.params else []
        loops = [up for s in stores[:1] for up in facts.scopes.ancestors(s) if isinstance(up, ast.For | ast.AsyncFor)]
        around = loops[0] if len(stores) == 1 and loops else None
    found = (over for target, over in _pairs(around) if isinstance(target, ast.Name) and target.id == name.id)
    return next(found, None) if around is not None and around not in facts.loops.hot_loops else None


def elements_of(facts: Facts, read: ast.Name) -> Iterator[ast.Name]:
    """The reads of the names that a loop or a comprehension gives elements of what is read."""
    around = next(_around(facts, read), None)
    targets = [t.id for t, over in _pairs(around) if over is read and isinstance(t, ast.Name)]
    for name in targets:
        if isinstance(around, ast.comprehension):
            whole = facts.scopes.parents[around]
            reads = (n for n in walk(whole) if isinstance(n, ast.Name) and n.id == name)
            yield from (n for n in reads if facts.scopes.generator_of(n) is around)
        elif (scope := facts.scopes.scope_of(read).lookup(name)) is not None:
            yield from facts.scopes.reads(name, scope)


def _around(facts: Facts, read: ast.Name) -> Iterator[Around]:
    """The loop or comprehension whose iterable a read stands in, bare or as a part of `zip` or `enumerate`."""
    child: ast.AST = read
    for up in facts.scopes.ancestors(read):
        if isinstance(up, Around):
            if child is up.iter:
                yield up
            return
        if not isinstance(up, ast.Call):
            return
        child = up


def _pairs(around: Around | None) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of a loop, each with what it is given the elements of."""
    return _of(around.target, around.iter) if around is not None else []


def _of(target: ast.expr, over: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if not (isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and isinstance(target, ast.Tuple)):
        return [(target, over)]
    if over.func.id == "zip" and len(target.elts) == len(over.args):
        return list(zip(target.elts, over.args, strict=True))
    if over.func.id == "enumerate" and len(target.elts) == 2 and over.args:
        return _of(target.elts[1], over.args[0])
    return [(target, over)]

"""What a name of a loop or a comprehension is an element of: `outputs` of `for o, t in zip(outputs, targets)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .loops import WRAPPERS, last_part
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
        loops = [up for s in stores[:1] for up in facts.scopes.ancestors(s) if isinstance(up, (ast.For, ast.AsyncFor))]
        around = loops[0] if len(stores) == 1 and loops else None
    found = (over for target, over in _pairs(around) if isinstance(target, ast.Name) and target.id == name.id)
    return next(found, None) if around is not None and around not in facts.loops.hot_loops else None


def drawn_from(facts: Facts, around: Around, store: ast.AST) -> ast.expr | None:
    """What a name of a loop is an element of, or a part of one; None for the numbers that enumerate gives.

    Behind bars, copies and names for them: `bar = tqdm(enumerate(loader))`, `for i, (x, y) in bar:`.
    """
    target, over = around.target, _behind(facts, around.iter)
    while isinstance(over, ast.Call) and isinstance(target, ast.Tuple):
        called = getattr(over.func, "id", "")
        place = next((i for i, e in enumerate(target.elts) if store in walk(e)), None)
        if called == "enumerate" and len(target.elts) == 2 and over.args:
            if place == 0:
                return None
            target, over = target.elts[1], _behind(facts, over.args[0])
        elif called == "zip" and len(target.elts) == len(over.args) and place is not None:
            target, over = target.elts[place], _behind(facts, over.args[place])
        else:
            break
    return over


def _behind(facts: Facts, over: ast.expr, depth: int = 4) -> ast.expr:
    """`enumerate(loader)` of `tqdm(enumerate(loader), total=9)`, and of the one name for that."""
    if isinstance(over, ast.Name) and depth:
        scope = facts.scopes.scope_of(over).lookup(over.id)
        values = facts.devices.assigned(over.id, scope) if scope is not None and over.id not in scope.params else None
        if values and len(values) == 1 and isinstance(values[0], ast.Call) and last_part(values[0].func) in WRAPPERS:
            return _behind(facts, values[0], depth - 1)
    elif isinstance(over, ast.Call) and over.args and last_part(over.func) in WRAPPERS - {"enumerate", "zip", "trange"}:
        return _behind(facts, over.args[0], depth)
    return over


def elements_of(facts: Facts, read: ast.Name) -> Iterator[ast.Name]:
    """The reads of the names that a loop or a comprehension gives elements of what is read."""
    around = next(_around(facts, read), None)
    targets = [t.id for t, over in _pairs(around) if over is read and isinstance(t, ast.Name)]
    for name in targets:
        if isinstance(around, ast.comprehension):
            whole = facts.scopes.parents[around]
            reads = (n for n in walk(whole, ast.Name) if n.id == name)
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

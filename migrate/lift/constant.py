"""Whether a value of the step is the same in every step of the run, so that it can be the Trainer's."""

from __future__ import annotations

import ast

from ..facts.arguments import argument
from ..facts.nodes import walk
from ..facts.script import Facts
from .recipe import CannotLift, DataPass

CONVERSIONS = {"int", "float"}


def check_constant(facts: Facts, train: DataPass, value: ast.expr, what: str) -> None:
    """Raise where the loop, or a function that it may call, gives a part of the value anew, or changes it in place."""
    inside = _region(facts, train)
    for n in walk(value):
        if isinstance(n, ast.Call) and not (isinstance(n.func, ast.Name) and n.func.id in CONVERSIONS):
            raise CannotLift(n, f"{what} `{facts.short(n)}` is computed in every step")
        if isinstance(n, ast.Name) and (given := _argument(facts, train, n)) is not None:
            check_constant(facts, train, given, what)
        if isinstance(n, ast.Name) and any(_changes(facts, store, inside) for store in _stores(facts, n)):
            raise CannotLift(n, f"{what} `{n.id}` changes while the script trains")
        if isinstance(n, (ast.Attribute, ast.Subscript)):
            written = [x for x in facts.walk(type(n)) if not isinstance(x.ctx, ast.Load) and _alike(x, n)]
            if any(_changes(facts, x, inside) for x in written):
                raise CannotLift(n, f"{what} `{facts.short(n)}` changes while the script trains")
    names = {n.id for n in walk(value, ast.Name)}
    for f in (n.func for n in inside if isinstance(n, ast.Call)):
        if isinstance(f, ast.Attribute) and f.attr.endswith("_") and getattr(f.value, "id", None) in names:
            raise CannotLift(f, f"{what} `{facts.short(f.value)}` changes while the script trains")


def _region(facts: Facts, train: DataPass) -> set[ast.AST]:
    """Everything in the loops around the pass, and in the function that makes it."""
    found: set[ast.AST] = set(walk(train.function)) if train.function is not None else set()
    for at in (train.loop, *([train.call] if train.call is not None else [])):
        loops = [u for u in (at, *facts.scopes.ancestors(at)) if isinstance(u, (ast.For, ast.While))]
        found.update(n for loop in loops[-1:] for n in walk(loop))
    return found


def _argument(facts: Facts, train: DataPass, name: ast.Name) -> ast.expr | None:
    """What the loop gives the function of the pass for a parameter of this name."""
    f = train.function
    if f is None or train.call is None or name.id not in facts.scopes.by_node[f].params:
        return None
    return argument(train.call, f, name.id) if facts.scopes.scope_of(name).node is f else None


def _stores(facts: Facts, name: ast.Name) -> list[ast.AST]:
    home = facts.scopes.scope_of(name).lookup(name.id)
    return list(home.stores.get(name.id, ())) if home is not None else []


def _changes(facts: Facts, store: ast.AST, inside: set[ast.AST]) -> bool:
    """Whether a value is given in the loop; or in a function that may run meanwhile, which no constructor does."""
    if store in inside:
        return True
    f = next((u for u in facts.scopes.ancestors(store) if isinstance(u, ast.FunctionDef)), None)
    holds_loop = f is not None and any(n in inside for n in walk(f))
    return f is not None and not holds_loop and f.name != "__init__"


def _alike(written: ast.AST, read: ast.AST) -> bool:
    """The same attribute of anything; an element of the same thing."""
    if isinstance(written, ast.Attribute) and isinstance(read, ast.Attribute):
        return written.attr == read.attr
    if isinstance(written, ast.Subscript) and isinstance(read, ast.Subscript):
        return ast.unparse(written.value) == ast.unparse(read.value)
    return False

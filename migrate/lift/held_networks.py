"""Networks that a step works with through what holds them, and that nothing but the script places.

`soft = Soft(teacher)` of a plain class, `partial(teacher, ...)`, `forward = teacher.forward`; of `first = teacher[0]`
the rest of the network would stay where it was. What registers a network as its part moves it along.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import given_to
from ..facts.nodes import walk
from ..facts.other_files import found_there
from ..facts.scopes import Scope
from ..facts.script import Facts
from .chunks import Chunk

PARTIALS = ("functools.partial", "functools.partialmethod")
DEPTH = 3  # of objects that hold objects


def held_networks(facts: Facts, chunks: list[Chunk], homes: tuple[Scope, ...]) -> Iterator[tuple[str, Scope]]:
    """The names that what a step reads was made with."""
    seen: set[tuple[Scope, str]] = set()
    ahead = [(n, 0) for chunk in chunks for s in chunk.statements for n in walk(s, ast.Name)]
    for n, depth in ahead:  # which grows meanwhile
        home = facts.scopes.scope_of(n).lookup(n.id) if isinstance(n.ctx, ast.Load) else None
        if home not in homes or home is None or (home, n.id) in seen:
            continue
        seen.add((home, n.id))
        if depth < DEPTH:
            held = [h for value in _values(facts, n.id, home) for h in _held_by(facts, value)]
            found = ((h, facts.scopes.scope_of(h).lookup(h.id)) for h in held)
            yield from ((h.id, where) for h, where in found if where is not None and where in homes)
            ahead += [(h, depth + 1) for h in held]


def _values(facts: Facts, name: str, home: Scope) -> Iterator[ast.expr]:
    """What a name is given, and what its attributes are: `state.teacher = teacher`."""
    yield from facts.devices.assigned(name, home) or ()
    for read in facts.scopes.reads(name, home):
        of = facts.scopes.parents.get(read)
        s = facts.scopes.parents.get(of) if isinstance(of, ast.Attribute) and isinstance(of.ctx, ast.Store) else None
        if isinstance(s, ast.Assign):
            yield ast.Tuple([s.value], ast.Load())


def _held_by(facts: Facts, value: ast.expr) -> Iterator[ast.Name]:
    """The names of what a value holds, or is a part of."""
    if isinstance(value, (ast.Attribute, ast.Subscript)):
        while isinstance(value, (ast.Attribute, ast.Subscript)):
            value = value.value
        if isinstance(value, ast.Name):
            yield value
    elif isinstance(value, ast.Tuple):
        yield from (e for e in value.elts if isinstance(e, ast.Name))
    elif isinstance(value, ast.Call):
        given = given_to(value) if facts.names.resolve(value.func) in PARTIALS else _kept(facts, value)
        for e in given:
            parts = e.elts if isinstance(e, (ast.List, ast.Tuple)) else [e]
            yield from (p for p in parts if isinstance(p, ast.Name))


def _kept(facts: Facts, made: ast.Call) -> list[ast.expr]:
    """What an object of a class of the project is given, and keeps in another way than as its registered part."""
    there, c = facts, facts.devices.own_movers.class_of(made)
    if c is None and facts.others:
        found = found_there(facts, made.func)
        there, c = (found[1], found[2]) if found is not None and isinstance(found[2], ast.ClassDef) else (facts, None)
    if c is None:
        return []
    init = there.classes.methods(c).get("__init__")
    if c not in there.classes.modules or init is None:
        return given_to(made)
    plain = [s.value for s in walk(init, ast.Assign) if isinstance(s.targets[0], ast.Attribute)]
    registered = {v.id for v in plain if isinstance(v, ast.Name)}
    names = [a.arg for a in init.args.args[1:]]
    given = [*zip(names, made.args, strict=False), *((k.arg, k.value) for k in made.keywords)]
    return [v for name, v in given if name not in registered]

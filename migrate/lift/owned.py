"""Networks that an object keeps and its methods work with are parts of the Module, which is given the object alone:
the Trainer would neither place them nor average their gradients.

    def step(self, batch):
        return loss_of(self.net, batch)

`loss = trainer.step(batch)` names no network; so does `self.step(batch)` where it stays a method.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.other_files import found_there
from ..facts.script import Facts
from .called_networks import is_network
from .chunks import Binder, Chunk, Variable, Variables, free_name
from .loaders import values_of
from .networks import with_parameters
from .shape.calls import class_of

Method = ast.FunctionDef | ast.AsyncFunctionDef


def owned_networks(facts: Facts, binder: Binder, variables: Variables, name: str, called: list[ast.Name]) -> list[str]:
    """The lines of a constructor that make the networks of an object parts of the Module: `self.net = owner.net`.

    `called`: where the steps read something of it.
    """
    there, c = _class_of(facts, binder, called[0]) if called else (facts, None)
    if c is None or c in there.classes.modules:
        return []
    methods = _methods(there, c, {m for n in called for m in _named(there, c, _asked(facts, n))})
    given = {ast.unparse(v) for n in variables.constructor for v in _values(facts, binder, n)}
    taken = set(variables.attributes.values())
    object_ = "owner" if name == "self" else name
    lines = []
    ups = (there.scopes.parents.get(n) for n in called)
    read = [up.attr for up in ups if isinstance(up, ast.Attribute) and _is_asked(there, up) and _is_own(there, up)]
    for a in dict.fromkeys([*read, *(a.attr for m in methods for a in _networks(there, m))]):
        if f"{name}.{a}" in given or _is_set_by(methods, a):
            continue
        own = free_name(a) if free_name(a) not in taken else f"{object_}_{a}"
        value = f"{object_}.{a}" if _is_sure(there, c, a) else f'getattr({object_}, "{a}", None)'
        lines.append(f"self.{own} = {value}")
    return lines


def called_on(facts: Facts, binder: Binder, chunks: list[Chunk]) -> dict[str, list[ast.Name]]:
    """The objects of the trunk where the steps call them, or a method of them, or hand one on, by their names."""
    found = defaultdict[str, list[ast.Name]](list)
    if not facts.others and not any(True for _ in facts.walk(ast.ClassDef)):
        return found
    for n in (n for chunk in chunks for s in chunk.statements for n in walk(s)):
        of = n.value if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load) else getattr(n, "func", None)
        if isinstance(of, ast.Name) and binder.variable(of) == Variable("", of.id):
            found[of.id].append(of)
    return found


def _asked(facts: Facts, of: ast.Name) -> str:
    up = facts.scopes.parents[of]
    return up.attr if isinstance(up, ast.Attribute) else "__call__"


def _class_of(facts: Facts, binder: Binder, of: ast.Name) -> tuple[Facts, ast.ClassDef | None]:
    """The class that the object is of, in its file: that of the trunk's own method for `self`."""
    f = binder.trunk_scope.node
    if isinstance(f, Method) and f.args.args and f.args.args[0].arg == of.id:
        return facts, facts.classes.holder(f)
    return class_there(facts, of)


def class_there(facts: Facts, of: ast.Name) -> tuple[Facts, ast.ClassDef | None]:
    """The class that a name is made an instance of, in its only assignment, and the facts of its file."""
    own = class_of(facts, of)
    scope = facts.scopes.scope_of(of).lookup(of.id) if own is None and facts.others else None
    values = values_of(facts, of.id, scope) if scope is not None else []
    made = values[0].func if len(values) == 1 and isinstance(values[0], ast.Call) else None
    found = found_there(facts, made) if made is not None else None
    if found is None or not isinstance(found[2], ast.ClassDef):
        return facts, own
    return found[1], found[2]


def _named(facts: Facts, c: ast.ClassDef, name: str) -> list[Method]:
    """The methods that a name may mean: that of the class, or of the nearest above it, and those of classes below."""
    classes = facts.classes
    own = (classes.methods(d).get(name) for d in classes.above(c))
    below = (classes.methods(d).get(name) for d in facts.walk(ast.ClassDef) if d is not c and c in classes.above(d))
    return [m for m in (next((m for m in own if m is not None), None), *below) if m is not None]


def _methods(facts: Facts, c: ast.ClassDef, methods: set[Method]) -> list[Method]:
    """These, and those that they come to by `self`."""
    found = sorted(methods, key=lambda m: m.lineno)
    for m in found:  # which grows meanwhile
        for a in _of_self(m):
            found += [other for other in _named(facts, c, a.attr) if other not in found]
    return found


def _of_self(m: Method) -> Iterator[ast.Attribute]:
    first = m.args.args[0].arg if m.args.args else ""
    for a in walk(m, ast.Attribute):
        if isinstance(a.value, ast.Name) and a.value.id == first:
            yield a


def _networks(facts: Facts, m: Method) -> Iterator[ast.Attribute]:
    """The attributes of the object that a method reads and that are networks."""
    yield from (a for a in _of_self(m) if _is_own(facts, a))


def _is_asked(facts: Facts, a: ast.Attribute) -> bool:
    """The `self.net` of `self.net.train_step(batch)`."""
    method = facts.scopes.parents.get(a)
    call = facts.scopes.parents.get(method) if isinstance(method, ast.Attribute) else None
    return isinstance(call, ast.Call) and call.func is method


def _is_own(facts: Facts, a: ast.Attribute) -> bool:
    """Whether it reads an attribute that is a network."""
    stored = isinstance(a.ctx, ast.Load) and any(facts.stores_of(a.attr))
    return stored and (a.attr in with_parameters(facts) or is_network(facts, a))


def _is_set_by(methods: list[Method], name: str) -> bool:
    """Whether the steps give the object another network."""
    return any(a.attr == name and not isinstance(a.ctx, ast.Load) for m in methods for a in _of_self(m))


def _is_sure(facts: Facts, c: ast.ClassDef, name: str) -> bool:
    """Whether the constructor gives the attribute a value in any case."""
    makers, stores = _named(facts, c, "__init__"), facts.stores_of(name)
    return bool(makers) and any(facts.scopes.statement_of(s) in makers[0].body for s in stores)


def _values(facts: Facts, binder: Binder, name: str) -> list[ast.expr]:
    statements = (facts.scopes.statement_of(s) for s in binder.trunk_scope.stores.get(name, ()))
    return [s.value for s in statements if isinstance(s, ast.Assign)]

"""What a call in a step runs, where callers say it: `criterion(z, y)` of a parameter, or an entry of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .arguments import entry
from .back_from_cpu import itself
from .batch_choices import as_if
from .batch_functions import is_own
from .batch_values import Value
from .given_to_objects import given_to_constructor

if TYPE_CHECKING:
    from .batch_calls import BatchCall
    from .script import Facts

COPIES = ("copy.copy", "copy.deepcopy")
MANY = 20  # of what callers give, one in another
DEPTH = 5  # of names for names, and of dictionaries that are handed on


def handed_on(of: BatchCall) -> Value | None:
    """Each of what the callers give, called here instead; None where nothing is handed on."""
    run, call = of.run, of.call
    given = list(dict.fromkeys(_given(run.facts, call.func)))
    if not given or call.func in run.mixing.handing or len(run.mixing.handing) > MANY:
        return None
    run.mixing.handing.add(call.func)
    try:
        return run.joined([as_if(run, call, ast.Call(v, call.args, call.keywords)) for v in given])
    finally:
        run.mixing.handing.discard(call.func)


def _given(facts: Facts, e: ast.expr, depth: int = 0) -> Iterator[ast.expr]:
    """What a parameter, an entry or a name for one of them stands for, where it is given; nothing for all else."""
    if depth > DEPTH:
        return
    e = itself(e)
    values: list[ast.expr] = []
    if isinstance(e, ast.Name):
        values = _values(facts, e)
        scope = facts.scopes.scope_of(e).lookup(e.id)
        if scope is not None and e.id not in scope.params:  # a name of its own is known by what makes it
            values = values if len(values) == 1 and _is_handed(facts, values[0], depth) else []
    elif isinstance(e, ast.IfExp):
        values = [e.body, e.orelse]
    elif isinstance(e, ast.Subscript) and isinstance(e.slice, ast.Constant) and isinstance(e.slice.value, str):
        entries = (entry(t, e.slice.value) for t in _tables(facts, e.value, depth + 1))
        values = [v for v in entries if v is not None]
    elif isinstance(e, ast.Call):
        values = _made(facts, e, depth)
    elif is_own(e):
        values = _given_to_object(facts, e)
    for v in values:
        further = list(_given(facts, v, depth + 1))
        yield from further or [v]


def _given_to_object(facts: Facts, e: ast.Attribute) -> list[ast.expr]:
    """What the constructor of an object is given for `self.encoder`: `Net(Encoder())`."""
    c = facts.names.nodes.class_of(e)
    init = facts.classes.methods(c).get("__init__") if c is not None else None
    if not isinstance(init, ast.FunctionDef):
        return []
    kept = [v for v in facts.devices.attribute_values.get(e.attr, []) if facts.scopes.scope_of(v).node is init]
    return [v for k in kept if isinstance(k, ast.Name) for v in given_to_constructor(facts, init, k.id)]


def _is_handed(facts: Facts, value: ast.expr, depth: int) -> bool:
    value = itself(value)
    if isinstance(value, ast.Call):
        return bool(_made(facts, value, depth))
    return isinstance(value, (ast.Name, ast.Subscript, ast.IfExp))


def _made(facts: Facts, call: ast.Call, depth: int) -> list[ast.expr]:
    """What a call makes that does not name it: `NETS[args.net](3)`, `(A if x else B)(3)`, `copy.deepcopy(net)`."""
    if facts.names.resolve(call.func) in COPIES:
        return call.args[:1]
    func, kinds = call.func, list[ast.expr]()
    if isinstance(func, ast.Name):
        values = _values(facts, func)
        func = values[0] if len(values) == 1 else func
        kinds = values if len(values) > 1 or isinstance(func, ast.Name) else []
    if isinstance(func, ast.Lambda):
        return [func.body]
    if isinstance(func, ast.Call) and facts.names.resolve(func.func) == "functools.partial":
        kinds = func.args[:1]
    elif isinstance(func, ast.IfExp):
        kinds = [func.body, func.orelse]
    elif isinstance(func, ast.Subscript):
        tables = _tables(facts, func.value, depth + 1)
        kinds = [kind for t in tables if isinstance(t, ast.Dict) for kind in _under(t, func.slice)]
    return [ast.Call(kind, call.args, call.keywords) for kind in kinds]


def _under(table: ast.Dict, key: ast.expr) -> list[ast.expr]:
    """What a dictionary has under a key, or under any where that does not show."""
    if not isinstance(key, ast.Constant):
        return table.values
    found = entry(table, str(key.value))
    return [found] if found is not None else []


def _tables(facts: Facts, e: ast.expr, depth: int) -> Iterator[ast.expr]:
    """The dictionaries that a name may be."""
    if not isinstance(e, ast.Name):
        yield e
    elif depth <= DEPTH:
        for v in _values(facts, e):
            yield from _tables(facts, v, depth + 1)


def _values(facts: Facts, name: ast.Name) -> list[ast.expr]:
    """What assignments give a name, or callers a parameter that nothing binds anew."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    if scope is None:
        return []
    if name.id not in scope.params:
        return facts.devices.assigned(name.id, scope) or []
    return (facts.devices.given(scope, name.id) or []) if name.id not in scope.stores else []

"""Objects that keep samples and give earlier ones back: `fakes = pool.query(fakes)` of CycleGAN, a queue, a memory.

A process with shares of the batches would keep, and get, those of its own shares. Meters and logs, of which nothing
comes back that is trained on, and modules are none of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument
from ..facts.handed_back import handed_back
from ..facts.nodes import walk
from ..facts.other_files import found_there
from ..facts.script import Facts
from .chunks import given_arguments
from .collected import of_samples
from .holders import methods_of
from .nodes import local_function, walk_here
from .pool_methods import Method, flows, reads
from .reads import stored
from .recipe import CannotLift, DataPass

BACKWARD = ("backward", "grad")
DEPTH = 4  # of names for names


def check_pools(facts: Facts, train: DataPass) -> None:
    """Raise for a method that keeps what it is given of a batch, and gives back what was kept to be trained on."""
    for body, own in _blocks(facts, train.body, of_samples(facts, train, train.body), set()):
        _check_block(facts, body, own)


def _blocks(
    facts: Facts, body: list[ast.stmt], own: set[str], seen: set[ast.FunctionDef]
) -> Iterator[tuple[list[ast.stmt], set[str]]]:
    """The statements, and those of the functions of the file that they call, each with its names of the samples."""
    yield body, own
    for n in (n for s in body for n in walk_here(s)):
        f = local_function(facts, n.func) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) else None
        if f is not None and f not in seen and isinstance(n, ast.Call):
            seen.add(f)
            given = {p for p, v in given_arguments(f, n).items() if reads(v, own)}
            yield from _blocks(facts, f.body, given | stored(f.body), seen)


def _check_block(facts: Facts, body: list[ast.stmt], own: set[str]) -> None:
    """`own`: the names that are made of the samples."""
    calls = [(n, m) for s in body for n in walk_here(s) if isinstance(n, ast.Call) for m in _methods(facts, n, own)]
    for call, method in calls:
        of_object = [(c, m) for c, m in calls if _receiver(c) == _receiver(call)]
        kept = {a for c, m in of_object for a in m.keeps(_given(c, m, own))}
        kept -= {a for _, m in of_object for a in m.begins_anew()}
        if kept and method.gives_back(kept) and _trained_on(facts, body, call):
            held = _receiver(call)
            raise CannotLift(call, f"`{facts.short(call)}` gives back what `{held}` kept of earlier batches")


def _receiver(call: ast.Call) -> str:
    """The object that a method is called of, or that is called itself."""
    return ast.unparse(call.func.value if isinstance(call.func, ast.Attribute) else call.func)


def _given(call: ast.Call, method: Method, own: set[str]) -> set[str]:
    """The parameters of a method that get what is made of the samples."""
    given = {p: argument(call, method.f, p, True) for p in method.parameters}
    found = {p for p, v in given.items() if v is not None and reads(v, own)}
    many = method.f.args.vararg
    return found | {many.arg} if many is not None and any(reads(a, own) for a in call.args) else found


def _trained_on(facts: Facts, body: list[ast.stmt], call: ast.Call) -> bool:
    """Whether what a call gives goes into a backward pass, a function that makes one, or what the block returns."""
    found = flows(body, set(), call)
    for n in (n for s in body for n in walk_here(s)):
        if isinstance(n, ast.Return) and reads(n, found, call):
            return True
        if isinstance(n, ast.Call) and n is not call and _trains(facts, n) and reads(n, found, call):
            return True
    return False


def _trains(facts: Facts, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in BACKWARD
    f = local_function(facts, call.func) if isinstance(call.func, ast.Name) else None
    blocks = _blocks(facts, f.body, set(), {f}) if f is not None else ()
    made = (n for body, _ in blocks for s in body for n in walk(s))
    return any(isinstance(n, ast.Attribute) and n.attr in BACKWARD for n in made)


# -- whose method is called ------------------------------------------------------------------------------------


def _methods(facts: Facts, call: ast.Call, own: set[str]) -> list[Method]:
    """What a call of an object that lives longer than a step runs, by its classes here or in another file."""
    func = call.func
    if isinstance(func, ast.Name):
        if func.id in own or local_function(facts, func) is not None:
            return []
        return [m for home, c in _classes(facts, func) for m in Method.of(home, c, "__call__")]
    root = func
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if not isinstance(func, ast.Attribute) or not isinstance(root, ast.Name) or root.id in own:
        return []
    if facts.names.resolve(func) is not None:
        return []  # of an imported module
    known = _classes(facts, func.value)
    if not known:  # where it comes from does not show: by the name of the method
        known = [(facts, c) for f in methods_of(facts, func.attr) if (c := facts.classes.holder(f)) is not None]
    return [m for home, c in known for m in Method.of(home, c, func.attr)]


def _classes(facts: Facts, e: ast.expr) -> list[tuple[Facts, ast.ClassDef]]:
    """The classes that an object may be of, each with the facts of its file."""
    found: list[tuple[Facts, ast.ClassDef]] = []
    seen: set[tuple[Facts, ast.expr | str]] = set()
    ways = [(facts, e)]
    for _ in range(DEPTH + 1):
        further: list[tuple[Facts, ast.expr]] = []
        for home, v in ways:
            key = home, v.attr if isinstance(v, ast.Attribute) else v  # an attribute's values go by its name
            if key in seen:
                continue
            seen.add(key)
            if not isinstance(v, ast.Call):
                further += [(home, given) for given in _values(home, v)]
            elif called := _called(home, v):
                found += [pair for pair in called if pair not in found]
            else:
                further += [(m.facts, m.e) for m in handed_back(home, v) if m.e is not v]
        ways = further
    return found


def _called(facts: Facts, call: ast.Call) -> list[tuple[Facts, ast.ClassDef]]:
    """The class that is called."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    own = [c for c in facts.walk(ast.ClassDef) if c.name == name]
    if own:
        return [(facts, c) for c in own]
    there = found_there(facts, call.func) if facts.others else None
    if there is not None and isinstance(there[2], ast.ClassDef):
        return [(there[1], there[2])]
    return []


def _values(facts: Facts, e: ast.expr) -> Iterator[ast.expr]:
    """What gives an expression its value: assignments, callers, and the elements of lists that are written out."""
    if isinstance(e, ast.IfExp):
        yield from (e.body, e.orelse)
    elif isinstance(e, ast.Name):
        scope = facts.scopes.scope_of(e).lookup(e.id)
        if scope is not None:
            yield from facts.devices.assigned(e.id, scope) or [m.e for m in handed_back(facts, e) if m.facts is facts]
            yield from (facts.devices.given(scope, e.id) or ()) if e.id in scope.params else ()
    elif isinstance(e, ast.Attribute):
        ups = (facts.scopes.parents.get(n) for n in facts.stores_of(e.attr))
        yield from (up.value for up in ups if isinstance(up, (ast.Assign, ast.AnnAssign)) and up.value is not None)
    elif isinstance(e, ast.Subscript):
        for held in _values(facts, e.value):
            if isinstance(held, (ast.List, ast.Tuple)):
                yield from held.elts
            elif isinstance(held, ast.Dict):
                yield from held.values
            elif isinstance(held, (ast.ListComp, ast.DictComp)):
                yield held.elt if isinstance(held, ast.ListComp) else held.value

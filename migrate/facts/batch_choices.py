"""Which functions and modules a call in a step may run, where a loop or a list hands them out.

`for loss in self.losses: total = total + loss(z, y)`, `losses[1](z, y)`, `map(lambda f: f(z), losses)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .batch_builtins import by_places
from .batch_functions import held, is_own, target_of
from .batch_values import PLAIN, REDUCED, Value, replace
from .batch_vmap import names_around
from .spelled import dotted

if TYPE_CHECKING:
    from .batch_calls import BatchCall
    from .mixing import Run

LISTS = ("torch.nn.ModuleList", "torch.nn.ModuleDict", "list", "tuple", "set", "reversed", "iter", "sorted", "dict")
APPLIES = {"map": 1, "functools.reduce": 2, "itertools.starmap": 1}  # how many arguments each part gives, at least
DICTIONARIES = ("dict", "ModuleDict", "OrderedDict")
DEPTH = 5  # of lists in lists, and of names for names


def chosen(run: Run, func: ast.expr) -> list[ast.expr]:
    """The expressions that what is called may be one of; none where no loop and no list hands it out."""
    if isinstance(func, ast.Subscript) and not isinstance(func.slice, ast.Slice):
        listed = _listed(run, func.value)
        key = func.slice.operand if isinstance(func.slice, ast.UnaryOp) else func.slice
        at = key.value if isinstance(key, ast.Constant) else None
        if isinstance(listed, (ast.List, ast.Tuple)) and type(at) is int:
            at = at if key is func.slice else len(listed.elts) - at
            return listed.elts[at : at + 1]
        return [] if isinstance(at, str) else [v for _, v in _entries(listed)] or list(_elements(run, listed))
    return _handed_out(run, func, 0) if isinstance(func, ast.Name) else []


def _handed_out(run: Run, name: ast.Name, depth: int) -> list[ast.expr]:
    """What a loop, a comprehension or `map(lambda f: ...)` gives a name."""
    scopes = run.facts.scopes
    generator = scopes.generator_of(name)
    if generator is not None:
        return [v for e in _elements(run, generator.iter, depth) for v in _part(run, e, generator.target, name.id)]
    scope = scopes.scope_of(name).lookup(name.id)
    if scope is None:
        return []
    if name.id in scope.params:
        return list(_of_map(run, scope.node, name.id, depth))
    found: list[ast.expr] = []
    for store in scope.stores.get(name.id, ()):
        up = scopes.parents.get(store)
        while isinstance(up, (ast.Tuple, ast.List)):
            up = scopes.parents.get(up)
        if not isinstance(up, ast.For):
            return []
        found += [v for e in _elements(run, up.iter, depth) for v in _part(run, e, up.target, name.id)]
    return found


def _of_map(run: Run, f: ast.AST, name: str, depth: int) -> Iterator[ast.expr]:
    """What `map(f, losses)` gives a parameter of a lambda."""
    call = run.facts.scopes.parents.get(f)
    if not (isinstance(f, ast.Lambda) and isinstance(call, ast.Call) and call.args[:1] == [f]):
        return
    if ast.unparse(call.func) != "map" or name not in (names := [a.arg for a in f.args.args]):
        return
    place = names.index(name)
    for given in call.args[place + 1 : place + 2]:
        yield from _elements(run, given, depth)


def _part(run: Run, element: ast.expr, target: ast.expr, name: str) -> list[ast.expr]:
    """Of `(name, (loss, weight))` what a target of that form gives a name."""
    if isinstance(target, ast.Name):
        return [element] if target.id == name else []
    element = held(run, element) or element if isinstance(element, (ast.Name, ast.Attribute)) else element
    if not (isinstance(target, (ast.Tuple, ast.List)) and isinstance(element, (ast.Tuple, ast.List))):
        return []
    return [v for t, e in zip(target.elts, element.elts, strict=False) for v in _part(run, e, t, name)]


def _elements(run: Run, over: ast.expr | None, depth: int = 0) -> Iterator[ast.expr]:
    """What going through an expression gives, one after another."""
    if over is None or depth > DEPTH:
        return
    func, given = (over.func, over.args) if isinstance(over, ast.Call) else (None, [])
    called = ast.unparse(func) if isinstance(func, ast.Name) else ""
    if called == "enumerate" and given:
        yield from (_tuple([ast.Constant(None), e]) for e in _elements(run, given[0], depth + 1))
    elif called == "zip":
        parts = [list(_elements(run, a, depth + 1)) for a in given]
        for nth in range(max(map(len, parts), default=0)):
            yield _tuple([p[nth] if nth < len(p) else ast.Constant(None) for p in parts])
    elif isinstance(func, ast.Attribute) and func.attr in ("items", "values"):
        for k, v in _entries(_listed(run, func.value)):
            yield v if func.attr == "values" else _tuple([k, v])
    elif isinstance(over, (ast.ListComp, ast.GeneratorExp)):
        yield over.elt
    elif isinstance(over, ast.BinOp) and isinstance(over.op, ast.Add):
        yield from _elements(run, over.left, depth + 1)
        yield from _elements(run, over.right, depth + 1)
    elif isinstance(over, (ast.List, ast.Tuple, ast.Set)):
        for e in over.elts:
            if isinstance(e, ast.Starred):
                yield from _elements(run, e.value, depth + 1)
            else:
                yield e
    elif isinstance(over, ast.Name) and (each := _handed_out(run, over, depth + 1)):
        yield from (e for v in each for e in _elements(run, v, depth + 1))
    else:
        listed = _listed(run, over)
        if listed is not over:
            yield from _elements(run, listed, depth + 1)
        if is_own(over):
            yield from run.mixing.appended.get(over.attr, ())


def _listed(run: Run, e: ast.expr | None, depth: int = 0) -> ast.expr | None:
    """The display of what a name, an attribute, `nn.ModuleList([...])` or `list(...)` holds."""
    if depth > DEPTH:
        return None
    if isinstance(e, ast.Call):
        wraps = (run.facts.names.resolve(e.func) or ast.unparse(e.func)) in LISTS
        return _listed(run, e.args[0], depth + 1) if wraps and len(e.args) == 1 else e
    made = held(run, e) if isinstance(e, (ast.Name, ast.Attribute)) else None
    return e if made is None else _listed(run, made, depth + 1)


def _entries(e: ast.expr | None) -> list[tuple[ast.expr, ast.expr]]:
    """The keys and values of a dictionary's display, or of `dict(...)`."""
    if isinstance(e, ast.Dict):
        return [(k, v) for k, v in zip(e.keys, e.values, strict=True) if k is not None]
    if not (isinstance(e, ast.Call) and ast.unparse(e.func).rpartition(".")[2] in DICTIONARIES):
        return []
    return [(ast.Constant(k.arg), k.value) for k in e.keywords if k.arg]


def _tuple(parts: list[ast.expr]) -> ast.Tuple:
    return ast.Tuple(parts, ast.Load())


# -- running them ---------------------------------------------------------------------------------------------


def run_each(run: Run, call: ast.Call) -> Value | None:
    """What a call gives of the functions that it may run; None where they do not show."""
    found = [as_if(run, call, ast.Call(f, call.args, call.keywords)) for f in chosen(run, call.func)]
    return run.joined(found) if found else None


def one_of_several(of: BatchCall) -> Value | None:
    """`bank(z, y)` of a name that is given one object or another, by an option as a rule."""
    run, call = of.run, of.call
    scope = run.facts.scopes.scope_of(call.func).lookup(call.func.id) if isinstance(call.func, ast.Name) else None
    values = run.facts.devices.assigned(ast.unparse(call.func), scope) if scope is not None else None
    made = [v for v in values or () if isinstance(v, ast.Call)]
    if values is None or len(values) < 2 or not made:
        return None
    return run.joined([as_if(run, call, ast.Call(v, call.args, call.keywords)) for v in made])


def applied(run: Run, call: ast.Call, full: str | None, args: list[Value]) -> Value | None:
    """`map(f, zs)`, `functools.reduce(f, zs)` and `itertools.starmap(f, pairs)` as calls of f; None for any other."""
    times = APPLIES.get(full or dotted(call.func) or "")
    if times is None or len(call.args) < 2 or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    pairs = list(zip(call.args[1:], args[1:], strict=True))
    if times == 2:
        if args[1].kind == "batch" and not args[1].holds and args[1].dim == 0:
            run.flow.mixes.append(call)  # reduce(torch.maximum, z): one sample meets the next
            return args[1]
        given = [_one_of(*pairs[0])] * 2
    elif full == "itertools.starmap":
        one = _one_of(*pairs[0])
        given = [v for _, v in one.items] or [replace(one, holds=False)]
    else:
        given = [_one_of(e, v) for e, v in pairs]
    names = [f"{call.lineno}.{nth}" for nth in range(len(given))]  # what no name of the script is
    run.env |= dict(zip(names, given, strict=True))
    value = as_if(run, call, ast.Call(call.args[0], [ast.Name(n, ast.Load()) for n in names], []))
    for name in names:
        del run.env[name]
    return value if times == 2 else run.held([value])


def around(run: Run, func: ast.expr) -> list[Value]:
    """What a lambda, or a function of the step itself, reads of the step."""
    target = target_of(run, ast.Call(func, [], [])) if isinstance(func, (ast.Lambda, ast.Name)) else None
    if target is None or target.holder is not None or run.facts.scopes.scope_of(target.f) is run.facts.scopes.module:
        return []
    return [run.env[n] for n in names_around(run, target.f) if n in run.env]


def with_views(run: Run, call: ast.Call, args: list[Value]) -> list[Value]:
    """`self(views[1])`: no model is called with one sample, so that this is one of several views."""
    func = call.func
    if REDUCED not in args or not (is_own(func) or (isinstance(func, ast.Name) and func.id == "self")):
        return args
    found = list(args)
    for nth, (a, v) in enumerate(zip(call.args, args, strict=True)):
        of = a.value if isinstance(a, ast.Subscript) and isinstance(a.slice, ast.Constant) else None
        if isinstance(of, ast.Name) and v == REDUCED and (whole := run.value(of)).kind == "batch":
            found[nth] = replace(whole, rank=0, flat=False)
    return found


def _one_of(over: ast.expr, value: Value) -> Value:
    """What going through a value gives."""
    if value.holds and value.items and all(k == nth for nth, (k, _) in enumerate(value.items)):
        first = next((v for _, v in value.items if v.kind == value.kind), PLAIN)
        return first if by_places(over, value) or first.holds else replace(first, bent=value.bent)
    return value if by_places(over, value) else replace(value, holds=False, items=())


def as_if(run: Run, call: ast.Call, other: ast.Call) -> Value:
    """A value with what another call makes of it, told of the call that is written there."""
    flow = run.flow
    value = run.value(other)
    for nodes in (flow.mixes, flow.may_mix):
        nodes[:] = dict.fromkeys(call if n is other else n for n in nodes)  # its arguments were read for each
    if other in flow.within:
        flow.within[call] = flow.within.pop(other)
    if other in flow.there:
        flow.there[call] = flow.there.pop(other)
    sorts, met = (call if n is other else n for n in (value.sorts, value.met))
    return replace(value.bent_by(call), sorts=sorts, met=met)

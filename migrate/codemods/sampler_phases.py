"""T4: whether a DataLoader is for training or for evaluation, which never gains `shuffle`: by the names around it, by
what a loop goes through, and by those who call its function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from ..facts.arguments import argument_at, default_of
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts

EVALUATES = re.compile(
    r"(^|[^a-z])(val|valid|validation|test|testing|eval|evaluate|evaluation|dev|predict|inference)"
    r"(set|data|dataset|loader|dataloader|dl|ds)?([^a-z]|$)"
)

# conditions that ask for the phase or the data: `if is_train:`; not for the processes: `if train and distributed:`
OF_DATA = re.compile(
    r"(^|[^a-z])(is_?)?(train(ing|er)?|shuffled?|phase|split|mode|stage|subset|val|valid(ation)?|test(ing)?"
    r"|eval(uate|uation)?|infer(ence)?|random|iterable(dataset)?)([^a-z]|$)",
    re.IGNORECASE,
)
TRAINS = re.compile(r"(^|[^a-z])(train|trn)")


def by_phase(facts: Facts, holder: ast.AST) -> str | None:
    """The source of `shuffle=` in `{x: DataLoader(...) for x in ["train", "val"]}`: what evaluates keeps its order.

    The same in `for x, d in (("train", a), ("val", b)):`, in `for x, d in sets.items():`, and in a function that is
    called with the phase.
    """
    for target, over, _ in _loops(facts, holder):
        for name, values in _columns(target, _gone_through(facts, over)):
            if (said := _of_phases(name, values)) is not None:
                return said or None
    f = _function(facts, holder)
    scope = facts.scopes.by_node[f] if f is not None else None
    for name in (n for n in scope.params if OF_DATA.search(n) and n not in scope.stores) if scope is not None else ():
        if (said := _of_phases(name, facts.devices.given(scope, name) or ())) is not None:  # type: ignore[arg-type]
            return said or None
    return "True"


def _loops(facts: Facts, holder: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, ast.AST]]:
    """The loops and comprehensions around a loader in its function: target, what they go through, and which it is."""
    for up in facts.scopes.ancestors(holder):
        if isinstance(up, ast.FunctionDef):
            return
        for loop in getattr(up, "generators", [up] if isinstance(up, ast.For) else []):
            yield loop.target, loop.iter, up


def _function(facts: Facts, holder: ast.AST) -> ast.FunctionDef | None:
    return next((up for up in facts.scopes.ancestors(holder) if isinstance(up, ast.FunctionDef)), None)


def _columns(target: ast.expr, values: Sequence[ast.expr]) -> Iterator[tuple[str, Sequence[ast.expr]]]:
    """The names of a loop's target, each with its values: of rows where there are several."""
    if isinstance(target, ast.Name):
        yield target.id, values
    elif isinstance(target, ast.Tuple) and values and all(isinstance(row, ast.Tuple) for row in values):
        rows = [row.elts for row in values if isinstance(row, ast.Tuple)]
        for part, column in zip(target.elts, zip(*rows, strict=False), strict=False):
            yield from _columns(part, column)


def _gone_through(facts: Facts, over: ast.expr, depth: int = 0) -> Sequence[ast.expr]:
    """The elements of what a loop goes through: a list, a dictionary's keys or items; none where they are unknown."""
    if isinstance(over, (ast.List, ast.Tuple, ast.Set)):
        return over.elts
    if isinstance(over, ast.Dict):
        return [k for k in over.keys if k is not None] if all(over.keys) else ()
    if isinstance(over, ast.DictComp) and len(over.generators) == 1:
        named = ast.unparse(over.key) == ast.unparse(over.generators[0].target)
        return _gone_through(facts, over.generators[0].iter, depth + 1) if named and depth < 4 else ()
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and not over.args:
        keys = _gone_through(facts, over.func.value, depth + 1) if over.func.attr in ("items", "keys") else ()
        return [ast.Tuple([k, k], ast.Load()) for k in keys] if over.func.attr == "items" else keys
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and depth < 4:
        if over.func.id == "dict" and not over.args:
            return [ast.Constant(k.arg) for k in over.keywords] if all(k.arg for k in over.keywords) else ()
        columns = [_gone_through(facts, a, depth + 1) for a in over.args]
        if over.func.id == "enumerate" and columns:
            columns = [[ast.Constant(i) for i in range(len(columns[0]))], columns[0]]
        elif over.func.id != "zip":
            return ()
        return [ast.Tuple(list(row), ast.Load()) for row in zip(*columns, strict=False)]
    if isinstance(over, ast.Name) and depth < 4:
        scope = facts.scopes.scope_of(over).lookup(over.id)
        values = facts.devices.assigned(over.id, scope) if scope is not None else None
        if not values or len(values) > 1 or scope is None:
            return ()
        return _gone_through(facts, values[0], depth + 1) or _filled(facts, over.id, scope)
    return ()


def _filled(facts: Facts, name: str, scope: Scope) -> Sequence[ast.expr]:
    """The keys that a dictionary is given one by one: `sets["val"] = ...`."""
    places = (facts.scopes.parents.get(read) for read in facts.scopes.reads(name, scope))
    stores = [p for p in places if isinstance(p, ast.Subscript) and isinstance(p.ctx, ast.Store)]
    return [p.slice for p in stores] if all(isinstance(p.slice, ast.Constant) for p in stores) else ()


def _of_phases(name: str, values: Sequence[ast.expr]) -> str | None:
    """When a name that has these values is that of training; "" where never, None where they tell no phases apart."""
    said = [getattr(v, "value", None) for v in values]
    if said and all(isinstance(v, bool) for v in said) and len(set(said)) > 1:
        if re.match(r"(is_?)?train(ing)?$|shuffle$", name):
            return name
        return f"not {name}" if EVALUATES.search(name.lower()) else None
    phases = [v for v in dict.fromkeys(said) if isinstance(v, str)]
    shuffled = [p for p in phases if not EVALUATES.search(p.lower())]
    if not said or not all(isinstance(v, str) for v in said) or len(shuffled) == len(phases):
        return None
    several = f"{name} in ({', '.join(map(repr, shuffled))})"
    return several if len(shuffled) > 1 else f"{name} == {shuffled[0]!r}" if shuffled else ""


# -- training, evaluation, or both -----------------------------------------------------------------------------


def evaluates(facts: Facts, holder: ast.AST) -> bool:
    """Whether the names around a loader, or around the calls of its function, say that it is for evaluation."""
    return phases(facts, holder) == {True}


def phases(facts: Facts, holder: ast.AST, depth: int = 0, place: int | None = None) -> set[bool]:
    """What the loaders that a call makes are for: True for evaluation, False for training; empty where nothing says.

    `place`: which of what the call gives it is.
    """
    said = _said(_names(facts, holder, place))
    if said is not None:
        return {said}
    found: set[bool] = set()
    for counter, over, loop in _loops(facts, holder):
        up = facts.scopes.parents.get(loop)
        target = up.targets[0] if isinstance(up, ast.Assign) else None
        rows = (
            target.elts if isinstance(target, ast.Tuple) else _rows(facts, over) or _by_number(facts, holder, counter)
        )
        said_of = [_said([ast.unparse(row)]) for row in rows]
        found |= {bool(k) for k in said_of} if any(k is not None for k in said_of) else set()
    f = _function(facts, holder)
    if found or f is None or depth > 2:
        return found
    up = facts.scopes.parents[holder]
    returned = isinstance(up, ast.Tuple) and isinstance(facts.scopes.parents.get(up), ast.Return)
    place = up.elts.index(holder) if returned and isinstance(up, ast.Tuple) else None  # type: ignore[arg-type]
    made = [phases(facts, call, depth + 1, place) for call in _calls(facts, f)]
    return {k for kinds in made for k in kinds or {False}} if any(made) else set()


def _names(facts: Facts, holder: ast.AST, place: int | None = None) -> list[str]:
    """What a loader is called: by an assignment, a keyword, its function, its data."""
    names: list[str] = []
    child = holder
    for up in facts.scopes.ancestors(holder):
        if isinstance(up, (ast.Assign, ast.AnnAssign)):
            targets = getattr(up, "targets", None) or [up.target]  # type: ignore[union-attr]
            for t in targets:
                beside = up.value.elts if isinstance(up.value, (ast.Tuple, ast.List)) else []
                if isinstance(t, ast.Tuple) and child in beside and len(beside) == len(t.elts):
                    t = t.elts[beside.index(child)]
                if isinstance(t, ast.Tuple) and up.value is holder and place is not None and place < len(t.elts):
                    t = t.elts[place]
                names += [ast.unparse(t)] if not isinstance(t, ast.Tuple) else []
        elif isinstance(up, ast.keyword) and up.arg:
            names.append(up.arg)
        elif isinstance(up, ast.Dict) and child in up.values:
            names += [ast.unparse(k) for k in [up.keys[up.values.index(child)]] if k is not None]
        elif isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.append(up.name)
            break
        child = child if isinstance(up, (ast.Tuple, ast.List)) else up
    for name, place in ("dataset", 0), ("sampler", 3):
        if not isinstance(holder, ast.Call):
            break
        given = argument_at(holder, name, place)
        if given is not None and (place == 0 or isinstance(given, (ast.Name, ast.Attribute))):
            names.append(ast.unparse(given)[:80])
    return names


def _said(names: list[str]) -> bool | None:
    text = " ".join(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", n).lower() for n in names)
    return False if TRAINS.search(text) else True if EVALUATES.search(text) else None


def _rows(facts: Facts, over: ast.expr) -> Sequence[ast.expr]:
    """What tells the elements of a loop apart: of `sets.values()` the keys."""
    inner = over.args[0] if isinstance(over, ast.Call) and getattr(over.func, "id", "") == "enumerate" else over
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "values":
        return _gone_through(facts, inner.func.value)
    return _gone_through(facts, over)


def _by_number(facts: Facts, holder: ast.AST, counter: ast.expr) -> Sequence[ast.expr]:
    """Of `for i in range(2): loaders[names[i]] = DataLoader(sets[i])` the names, or what the sets are called."""
    every = list(walk(facts.scopes.statement_of(holder), ast.Subscript))
    of = [n.value for n in every if ast.unparse(n.slice) == ast.unparse(counter)]
    rows = (_gone_through(facts, e) or _default(facts, e) for e in of)
    return next((row for row in rows if any(_said([ast.unparse(x)]) is not None for x in row)), ())


def _default(facts: Facts, e: ast.expr) -> Sequence[ast.expr]:
    """The elements of what a parameter is by default."""
    scope = facts.scopes.scope_of(e).lookup(e.id) if isinstance(e, ast.Name) else None
    f = scope.node if scope is not None else None
    given = default_of(f, e.id) if isinstance(f, ast.FunctionDef) and isinstance(e, ast.Name) else None
    return _gone_through(facts, given) if given is not None else ()


def _calls(facts: Facts, f: ast.FunctionDef) -> list[ast.Call]:
    """The calls of a function or a method in this file."""
    uses = [*facts.devices.uses_of_function(f)]
    if facts.classes.holder(f) is not None:
        uses = [facts.scopes.parents.get(a) for a in facts.attributes.get(f.name, ())]  # type: ignore[misc]
    return [u for u in uses if isinstance(u, ast.Call) and getattr(u.func, "attr", f.name) == f.name]

"""Tensors of a batch, and what a network makes of them, that numpy and its like get: of those on a card they make none.

`accuracy_score(y, net(x).argmax(1))`, and a list that gets them one by one, `seen.extend(y)`, where that is handed on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..facts.arguments import given_to
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.tensor_methods import root
from ._indexes import is_of_loader
from ._kept_parts import OF_ANY, is_surely_tensor
from ._lengths import is_tensor

LIBRARIES = ("numpy", "sklearn", "scipy", "matplotlib")
ARRAYS = tuple(f"{name}." for name in LIBRARIES)
ADDS = ("extend", "append")

Asks = Callable[[Facts, ast.expr], bool]
Given = tuple[ast.Call, ast.expr]


def given_to_arrays(facts: Facts, is_left: Asks, is_there: Asks) -> Iterator[Given]:
    """Each such call and what it gets, or a list of its gets; `is_there`: where the runtime places it, as it stands."""
    if not any(name in facts.text.text for name in LIBRARIES):
        return
    for call in facts.walk(ast.Call):
        if not (facts.names.resolve(call.func) or "").startswith(ARRAYS):
            continue
        given = [v for g in given_to(call) for v in _kept(facts, g) or [g]]
        parts = [g for g in given if is_there(facts, g)]
        given = [g for g in parts if is_tensor(facts, g) or is_left(facts, g) or is_of_loader(facts, g)]
        any_kind = facts.names.resolve(call.func) in OF_ANY  # which is asked for then
        if any(any_kind or is_surely_tensor(facts, g, g) for g in given):  # beside one, a part of a batch is no text
            yield from ((call, g) for g in dict.fromkeys([*given, *_kept_too(facts, given)]))


def left_to_arrays(facts: Facts, is_left: Asks, moves_itself: Callable[[Facts, ast.AST], bool]) -> Iterator[Given]:
    """The same of what a loop leaves where its loader gave it, and moves other parts of its batches."""
    if not any(name in facts.text.text for name in LIBRARIES):
        return
    for call in facts.walk(ast.Call):
        hot = facts.loops.hot(call) if (facts.names.resolve(call.func) or "").startswith(ARRAYS) else None
        if hot is not None and moves_itself(facts, hot.loop):
            yield from ((call, g) for g in given_to(call) if is_left(facts, g))


def from_batches(facts: Facts, node: ast.expr, every: bool = True) -> bool:
    """Whether a name has its values from loops over batches; `every`: from nothing else."""
    name = root(node)
    if name is None or facts.scopes.generator_of(name) is not None:
        return False
    scope = facts.scopes.scope_of(name).lookup(name.id)
    stores = facts.placed.reaching(name, scope) if scope is not None else []
    within = [any(up in facts.loops.hot_loops for up in facts.scopes.ancestors(s)) for s in stores]
    return all(within) if every and within else any(within)


def _kept(facts: Facts, held: ast.expr) -> list[ast.expr]:
    """What a list gets in loops over batches: the x of `xs.extend(x)`, `xs.append(x)` and `xs += x`."""
    scope = facts.scopes.scope_of(held).lookup(held.id) if isinstance(held, ast.Name) else None
    if scope is None or not isinstance(held, ast.Name) or not _is_list(facts, held):
        return []
    found = [g for read in facts.scopes.reads(held.id, scope) if (g := _added(facts, read)) is not None]
    stores = (facts.scopes.parents.get(n) for n in scope.stores.get(held.id, ()))
    found += [s.value for s in stores if isinstance(s, ast.AugAssign)]
    return [_of_list(g) for g in found if facts.loops.hot(g) is not None]


def _is_list(facts: Facts, held: ast.Name) -> bool:
    """Whether a name is given an empty list, and what is added to that."""
    scope = facts.scopes.scope_of(held).lookup(held.id)
    stores = scope.stores.get(held.id, ()) if scope is not None else ()
    values = [_value(facts, n) for n in stores if not isinstance(facts.scopes.parents.get(n), ast.AugAssign)]
    return bool(values) and all(isinstance(v, ast.List) and not v.elts for v in values)


def _value(facts: Facts, store: ast.AST) -> ast.expr | None:
    """What one name gets of `x = []`, and of `n, x = 0, []`."""
    s = facts.scopes.statement_of(store)
    if not isinstance(s, ast.Assign) or len(s.targets) != 1:
        return None
    target, value = s.targets[0], s.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return next((v for t, v in zip(target.elts, value.elts, strict=True) if t is store), None)
    return value if target is store else None


def _added(facts: Facts, held: ast.expr) -> ast.expr | None:
    """The x of `held.extend(x)`."""
    up = facts.scopes.parents.get(held)
    call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) and up.attr in ADDS else None
    return call.args[0] if isinstance(call, ast.Call) and call.func is up and len(call.args) == 1 else None


def _of_list(given: ast.expr) -> ast.expr:
    """`x` of `list(x)`"""
    made = isinstance(given, ast.Call) and isinstance(given.func, ast.Name) and given.func.id == "list"
    return given.args[0] if made and isinstance(given, ast.Call) and len(given.args) == 1 else given


def _kept_too(facts: Facts, given: list[ast.expr]) -> Iterator[ast.expr]:
    """The y of `seen.extend(y)` in the loop in which a call gets the same y."""
    for name in (g for g in given if isinstance(g, ast.Name)):
        hot = facts.loops.hot(name)
        for n in walk(hot.loop, ast.Name) if hot is not None else ():
            up = facts.scopes.parents.get(n)
            call = up if isinstance(up, ast.Call) else None
            if n.id == name.id and call is not None and call.args == [n] and getattr(call.func, "attr", "") == "extend":
                yield n

"""Copies that a script keeps of a model's weights before it trains: an average's, those of the start.

A script places its model first, and the copies are there too; a Trainer places it when it trains, and the copies stay.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from .nodes import FUNCTIONS, walk
from .script import Facts, once_a_file

COPIES = {"clone", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like"}
OF_MODULES = {"parameters", "named_parameters", "buffers", "named_buffers", "state_dict"}


def copies_of_weights(facts: Facts, early: Callable[[Facts, ast.AST], bool] | None = None) -> Iterator[ast.expr]:
    """The expressions that copy weights, one after another, to be kept, where they run before the training loop.

    `early`: what else shows that they do.
    """
    early = early or before_training
    for loop in facts.walk(ast.For):
        if of_weights(loop.iter):
            yield from (c for c in _copied(facts, loop) if _is_kept(facts, c) and early(facts, loop))
    lists, sets, dicts = facts.walk(ast.ListComp), facts.walk(ast.SetComp), facts.walk(ast.DictComp)
    generated: list[tuple[ast.expr, ast.expr, list[ast.comprehension]]] = [
        *((a, a.elt, a.generators) for a in lists),
        *((b, b.elt, b.generators) for b in sets),
        *((c, c.value, c.generators) for c in dicts),
    ]
    for made, element, generators in generated:
        if any(of_weights(g.iter) for g in generators):
            copied = _copied(facts, element)
            if copied and not _only_loaded(facts, made) and early(facts, made):
                yield made

    for call in facts.calls_of("state_dict") if "deepcopy" in facts.text.text else ():
        state = facts.scopes.parents.get(call)
        whole = isinstance(state, ast.Call) and last_name(state.func) == "deepcopy" and state.args == [call]
        if isinstance(state, ast.Call) and whole and not _only_loaded(facts, state) and early(facts, state):
            yield state


def of_weights(node: ast.expr) -> bool:
    """Whether an expression goes through a network's weights."""
    return any(last_name(n.func) in OF_MODULES for n in walk(node, ast.Call))


def _copied(facts: Facts, node: ast.AST) -> list[ast.Call]:
    """`p.data.clone()`, where nothing says that it goes to the CPU, or anywhere; the runtime's own moves go."""
    return [c for c in walk(node, ast.Call) if last_name(c.func) in COPIES] if not goes_elsewhere(facts, node) else []


def goes_elsewhere(facts: Facts, node: ast.AST) -> bool:
    """Whether something in it goes to the CPU, or anywhere; the runtime's own moves go."""
    moves = [c for c in walk(node, ast.Call) if last_name(c.func) in ("cpu", "to")]
    return any((moved := facts.devices.moved(c)) is None or not facts.placed.by_runtime(moved) for c in moves)


def _is_kept(facts: Facts, call: ast.Call) -> bool:
    """`self.shadow[name] = p.clone()`, `kept.append(p.clone())`"""
    for up in facts.scopes.ancestors(call):
        if isinstance(up, ast.Call) and last_name(up.func) == "append":
            return True
        if isinstance(up, ast.stmt):
            return isinstance(up, ast.Assign) and any(isinstance(t, ast.Subscript) for t in up.targets)
    return False


def _only_loaded(facts: Facts, made: ast.expr) -> bool:
    """`model.load_state_dict(best)` copies from wherever that is."""
    up = facts.scopes.parents.get(made)
    target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    scope = facts.scopes.scope_of(made).lookup(target.id) if isinstance(target, ast.Name) else None
    if scope is None or not isinstance(target, ast.Name):
        return isinstance(up, (ast.Return, ast.Call))
    users = [facts.scopes.parents.get(r) for r in facts.scopes.reads(target.id, scope)]
    return all(isinstance(u, ast.Call) and last_name(u.func) == "load_state_dict" for u in users)


def by_constructor(facts: Facts, node: ast.AST) -> bool:
    """Whether it runs when an object is made: in a constructor, or in a method that this calls."""
    f = next((u for u in facts.scopes.ancestors(node) if isinstance(u, FUNCTIONS)), None)
    c = facts.classes.holder(f) if f is not None else None
    return c is not None and isinstance(f, ast.FunctionDef) and facts.classes.builds(c, f.name)


def before_training(facts: Facts, node: ast.AST, depth: int = 0) -> bool:
    """Whether it runs above a training loop: there, or in a function that is called there."""
    above = list(facts.scopes.ancestors(node))
    f = next((u for u in above if isinstance(u, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))), None)
    if any(isinstance(u, (ast.For, ast.While)) and not (isinstance(u, ast.For) and of_weights(u.iter)) for u in above):
        return False
    if _trains_below(facts, node, f):
        return True
    if f is None:
        return False
    if depth > 3 or isinstance(f, ast.Lambda):
        return False
    holder = facts.classes.holder(f)
    name = holder.name if holder is not None and f.name == "__init__" else f.name
    return any(before_training(facts, c, depth + 1) for c in facts.walk(ast.Call) if last_name(c.func) == name)


def _trains_below(facts: Facts, node: ast.AST, f: ast.AST | None) -> bool:
    """Whether a training loop of the same function stands below, or a call of what has one."""
    for loop in facts.loops.hot_loops:
        within = next((u for u in facts.scopes.ancestors(loop) if isinstance(u, FUNCTIONS)), None)
        if within is f and node.lineno < loop.lineno:  # type: ignore[attr-defined]
            return True
    names = _training(facts)
    for call in (c for c in (walk(f) if f is not None else facts.walk(ast.Call)) if isinstance(c, ast.Call)):
        within = next((u for u in facts.scopes.ancestors(call) if isinstance(u, FUNCTIONS)), None)
        if within is f and node.lineno < call.lineno and _called(call) in names:  # type: ignore[attr-defined]
            return True
    return False


@once_a_file
def _training(facts: Facts) -> set[tuple[str, bool]]:
    """The functions and methods that have a training loop, or call such."""
    functions = {(f.name, facts.classes.holder(f) is not None): f for f in facts.walk(ast.FunctionDef)}
    has = {key for key, f in functions.items() if any(f in facts.scopes.ancestors(x) for x in facts.loops.hot_loops)}
    while more := {k for k, f in functions.items() if k not in has and any(_called(c) in has for c in walk(f))}:
        has |= more
    return has


def _called(call: ast.AST) -> tuple[str, bool]:
    """The name that a call has for what it calls, and whether that is a method."""
    f = call.func if isinstance(call, ast.Call) else None
    return (last_name(f), isinstance(f, ast.Attribute)) if f is not None else ("", False)


def last_name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")

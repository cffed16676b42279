"""T9: what rank 0 alone changes, below a guard that stays: the others know nothing of it, and are not to read it.

`history = []` is there on every rank; `if rank == 0: history.append(x)` fills that of rank 0. A guard around
`print(history[-1])` stays, then.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..facts.always_before import last_of
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts, once_a_file
from .rank_guards import CHANGES, done_once, loads_state, needed_to_send, sent_to_all

Place = tuple[Scope | None, str]  # the home of a name; none for `self.history`, which any function may read


def changed_alone(facts: Facts, branch: ast.If, of_rank_zero: Callable[[ast.expr], bool]) -> bool:
    """Whether a guarded block reads what another guard, which stays, lets rank 0 alone change."""
    guards = [g for g in facts.walk(ast.If) if _is_guard(g, of_rank_zero)]
    for_all = [g for g in guards if not g.orelse and needed_to_send(facts, g, of_rank_zero) is not None]
    return branch in _dependent(facts, tuple(guards), tuple(for_all))


def _is_guard(branch: ast.If, of_rank_zero: Callable[[ast.expr], bool]) -> bool:
    test = branch.test
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return any(map(of_rank_zero, parts))


@once_a_file
def _dependent(facts: Facts, guards: tuple[ast.If, ...], for_all: tuple[ast.If, ...]) -> set[ast.If]:
    """The guards that read what those that stay change, and what these change in turn; `for_all` go."""
    found: set[ast.If] = set()
    goes = {*for_all, *(g for g in guards if done_once(facts, g) or sent_to_all(facts, g) or loads_state(facts, g))}
    stay = [g for g in guards if g not in goes]
    rest = [g for g in guards if g not in stay]
    changed = [change for f in _left_to_one(facts) for change in _beyond(facts, f)]
    while True:
        body = [s for g in stay for s in g.body]
        changed += (change for s in body for change in _changes(facts, s))
        changed += (change for f in _called_alone(facts, body) for change in _beyond(facts, f))
        stay = [g for g in rest if g not in found and _reads(facts, g, changed)]
        if not stay:
            return found
        found.update(stay)


def _left_to_one(facts: Facts) -> Iterator[ast.FunctionDef]:
    """Functions that the others leave by `if rank != 0: return`, and those that a decorator leaves to rank 0."""
    for f in facts.walk(ast.FunctionDef):
        if facts.alone.is_for_one(f) or any(map(facts.alone.lets_go, f.body)):
            yield f


def _called_alone(facts: Facts, body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """The functions of this file that rank 0 calls there, and nothing calls elsewhere."""
    functions = {f.name: f for f in facts.walk(ast.FunctionDef)}
    open_nodes: list[ast.AST] = list(body)
    for s in open_nodes:
        for call in (n for n in walk(s, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            f = functions.pop(name, None)
            if f is not None and facts.alone.reached_by(f.body[-1]) == {True}:
                open_nodes += f.body
                yield f


def _beyond(facts: Facts, f: ast.FunctionDef) -> Iterator[tuple[Place, ast.AST]]:
    """What a function changes that is not its own."""
    own = facts.scopes.by_node[f]
    return ((place, n) for s in f.body for place, n in _changes(facts, s) if place[0] is not own)


def _changes(facts: Facts, s: ast.stmt) -> Iterator[tuple[Place, ast.AST]]:
    """What a statement gives a value, or changes in its place."""
    for n in walk(s):
        place = None
        if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(n.ctx, ast.Store):
            place = _place(facts, n)
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in CHANGES:
            place = _place(facts, n.func.value)
        if place is not None:
            yield place, n


def _place(facts: Facts, node: ast.AST) -> Place | None:
    """`seen` of `seen["last"]`, in its scope; `self.history`, wherever it is."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        home = facts.scopes.scope_of(node).lookup(node.id)
        return (home, node.id) if home is not None else None
    return (None, ast.unparse(node)) if isinstance(node, ast.Attribute) else None


def _reads(facts: Facts, guard: ast.If, changed: list[tuple[Place, ast.AST]]) -> bool:
    """Whether a value of rank 0's own comes to a read of the block."""
    for n in (n for s in guard.body for n in walk(s)):
        if not isinstance(n, (ast.Name, ast.Attribute)) or not isinstance(n.ctx, ast.Load):
            continue
        place = _place(facts, n)
        by = [node for p, node in changed if p == place]
        if by and isinstance(n, ast.Name) and all(isinstance(node, ast.Name) for node in by):
            home = facts.scopes.scope_of(n).lookup(n.id)
            by = [s for s in last_of(facts, n, list(home.stores.get(n.id, ()) if home else ())) if s in by]
        if by:
            return True
    return False

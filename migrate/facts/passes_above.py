"""Passes over data above the training in which no network works: nothing is placed by then, and the moves are theirs.

for x, y in loader:
    mean += x.to(device).sum(0)  # of which the training makes use
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from .back_from_cpu import MOVES
from .loops import MODEL_NAME
from .nodes import COMPREHENSIONS, FUNCTIONS, LOOPS, walk
from .tensor_methods import METHODS, VIEW_METHODS, root
from .unplaced import runs_above

if TYPE_CHECKING:
    from .script import Facts

DEPTH = 3  # of functions that call functions


def is_of_pass_above(facts: Facts, node: ast.expr) -> bool:
    """Whether what is moved there is a batch of such a pass."""
    up = facts.scopes.parents.get(node)
    name = root(node) if isinstance(up, ast.Attribute) and up.attr in MOVES else None
    if not facts.lifting or name is None:
        return False
    around = [u for u in facts.scopes.ancestors(node) if isinstance(u, (*LOOPS, *COMPREHENSIONS, *FUNCTIONS))]
    own = around[: next((i for i, u in enumerate(around) if isinstance(u, FUNCTIONS)), len(around))]
    giving = [u for u in own if any(n.id == name.id and isinstance(n.ctx, ast.Store) for n in walk(u, ast.Name))]
    over = (x for u in giving for x in ([u.iter] if isinstance(u, ast.For) else [g.iter for g in _generators(u)]))
    if not any(facts.loops.is_loader(x) for x in over) or any(u in facts.loops.hot_loops for u in own):
        return False
    return runs_above(facts, own[-1]) and not any(_may_be_network(facts, c) for c in walk(own[-1], ast.Call))


def _generators(node: ast.AST) -> list[ast.comprehension]:
    return getattr(node, "generators", [])


def _may_be_network(facts: Facts, call: ast.Call, depth: int = 0) -> bool:
    """Whether a call may be one of a network: not one of torch's, Python's or of a tensor."""
    f = call.func
    if facts.names.resolve(f) is not None:
        return not str(facts.names.resolve(f)).startswith(("torch.", "numpy."))
    if isinstance(f, ast.Attribute):
        of = root(f.value)
        if of is None and f.attr in METHODS | VIEW_METHODS:
            return False  # x.to(device).t()
        return of is None or of.id == "self" or MODEL_NAME.search(of.id) is not None
    if not isinstance(f, ast.Name) or depth > DEPTH:
        return True
    called = facts.devices.function_of(call)
    if called is None:
        return facts.scopes.scope_of(f).lookup(f.id) is not None or not hasattr(builtins, f.id)
    return any(_may_be_network(facts, c, depth + 1) for c in walk(called, ast.Call))

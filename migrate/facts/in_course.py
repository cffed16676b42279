"""Where every process comes in one order: the course of a script and what it calls, but nothing that gives samples.

Ranks have other samples each, and a loader's workers are processes of one rank: what a data set does as it gives
them is done by whoever comes there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .classes import Function
from .nodes import walk
from .script import once_a_file

if TYPE_CHECKING:
    from .script import Facts

OF_SAMPLES = ("__getitem__", "__getitems__", "__iter__", "__next__", "forward", "collate_fn", "worker_init_fn")


@once_a_file
def of_samples(facts: Facts, node: ast.AST) -> bool:
    """Whether a node stands in what gives a data set's samples, or in a function that this calls."""
    seen: set[ast.AST] = set()
    open_nodes = [node]
    while open_nodes:
        f = function_around(facts, open_nodes.pop())
        if f is None or f in seen:
            continue
        if f.name in OF_SAMPLES or (f.name == "__call__" and facts.classes.holder(f) is not None and _gives(f)):
            return True
        seen.add(f)
        open_nodes += callers_of(facts, f)
    return False


def _gives(f: ast.AST) -> bool:
    """Whether a function gives back what may be a sample: `EarlyStopping()(loss, net)` gives nothing, or a yes."""
    given = (n.value for n in walk(f) if isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)))
    return any(v is not None and not isinstance(v, (ast.Constant, ast.Compare, ast.BoolOp)) for v in given)


@once_a_file
def in_course(facts: Facts, node: ast.AST) -> bool:
    """Whether all processes come to a node, each as often: of methods, those that constructors alone call."""
    return not of_samples(facts, node) and _in_course(facts, node, set())


def _in_course(facts: Facts, node: ast.AST, seen: set[ast.AST]) -> bool:
    f = function_around(facts, node)
    if f is None:
        return not any(isinstance(up, ast.ClassDef) for up in facts.scopes.ancestors(node))
    if f in seen:
        return True
    callers = callers_of(facts, f)
    known = (
        bool(callers)
        or f.name == "__init__"
        or not any(isinstance(up, (ast.ClassDef, Function)) for up in facts.scopes.ancestors(f))
    )
    return known and all(_in_course(facts, c, seen | {f}) for c in callers)


def function_around(facts: Facts, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    return next((up for up in facts.scopes.ancestors(node) if isinstance(up, Function)), None)


def callers_of(facts: Facts, f: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Call]:
    """The calls by a function's name; those by its class's name, where it is a constructor."""
    holder = facts.classes.holder(f)
    made = holder is None or f.name == "__init__"
    calls = facts.alone.calls_of(holder.name if holder is not None and made else f.name)
    return [c for c in calls if facts.names.resolve(c.func) is None and (made or isinstance(c.func, ast.Attribute))]

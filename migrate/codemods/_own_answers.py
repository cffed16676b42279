"""What a process comes to by its own answer to whether a path is there: one that asks later may find another answer."""

from __future__ import annotations

import ast
from collections.abc import Container

from ..facts.alone import WAYS_OUT
from ..facts.classes import Function
from ..facts.in_course import callers_of, function_around
from ..facts.nodes import walk
from ..facts.runtime_names import runtime_name
from ..facts.script import Facts
from ._asked_paths import path_asked

ANSWER = "rank_zero_value"


def asking_each(facts: Facts) -> set[ast.If | ast.While]:
    """The branches on paths that each process asks for by itself."""
    branches: list[ast.If | ast.While] = [*facts.walk(ast.If), *facts.walk(ast.While)]
    return {s for s in branches if any(_asks(facts, n) for n in walk(s.test))}


def _asks(facts: Facts, n: ast.AST) -> bool:
    if not isinstance(n, ast.Call) or path_asked(facts, n) is None:
        return False
    up = facts.scopes.parents.get(n)
    return not (isinstance(up, ast.Call) and runtime_name(facts, up.func) == ANSWER)


def reached_by_own_answer(facts: Facts, node: ast.AST, asking: Container[ast.AST]) -> bool:
    """The same, through the calls of the functions that it stands in."""
    seen: set[ast.AST] = set()
    open_nodes = [node]
    while open_nodes:
        n = open_nodes.pop()
        if by_own_answer(facts, n, asking):
            return True
        f = function_around(facts, n)
        if f is not None and f not in seen:
            seen.add(f)
            open_nodes += callers_of(facts, f)
    return False


def by_own_answer(facts: Facts, node: ast.AST, asking: Container[ast.AST]) -> bool:
    """Whether one of these branches stands around a node in its own function, or leads out of it before."""
    child = node
    for up in facts.scopes.ancestors(node):
        if isinstance(up, (ast.If, ast.While)) and up in asking and child is not up.test:
            return True
        block = facts.scopes.block_of(child) if isinstance(child, ast.stmt) else []
        before = block[: block.index(child)] if child in block else []
        if any(s in asking and isinstance(n, WAYS_OUT) for s in before for n in walk(s)):
            return True
        if isinstance(up, (Function, ast.ClassDef, ast.Lambda)):
            return False
        child = up
    return False

"""T1: statements of which nothing is left without their moves: `net.cuda(), loss.cuda()`, `use_cuda and net.cuda()`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..facts.effects import only_asks
from ..facts.nodes import walk
from ..facts.script import Facts

Stripped = Callable[[ast.expr], ast.expr]


def idle_statements(facts: Facts, stripped: Stripped, only_moves: Callable[[ast.ListComp], bool]) -> Iterator[ast.Expr]:
    """`stripped`: what is left of an expression without its moves; `only_moves`: whether a list is of moves alone."""
    for s in facts.walk(ast.Expr):
        value = s.value
        if isinstance(value, ast.ListComp):
            idle = only_moves(value) and not has_effect(value.generators[0].iter)
        elif isinstance(value, (ast.Tuple, ast.List)):
            idle = bool(value.elts) and all(_is_idle(e, stripped) for e in value.elts)
        elif isinstance(value, ast.BoolOp):
            *asked, last = value.values
            idle = all(only_asks(facts.names, a) for a in asked) and _is_idle(last, stripped)
        else:
            continue
        if idle:
            yield s


def has_effect(node: ast.expr) -> bool:
    return any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await)) for n in walk(node))


def _is_idle(value: ast.expr, stripped: Stripped) -> bool:
    left = stripped(value)
    return left is not value and not has_effect(left)

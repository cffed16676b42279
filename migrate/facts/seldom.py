"""Whether a step itself decides that it comes to a line: `if oom:`, `if not torch.isfinite(loss):`, and no option."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from .nodes import FUNCTIONS, LOOPS, walk


def decided_by_the_step(node: ast.AST, ancestors: Iterable[ast.AST]) -> bool:
    """Whether a condition around a node, within its loop or function, asks for what is another thing in each round."""
    child, tests = node, list[ast.expr]()
    for up in ancestors:
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test:
            tests.append(up.test)
        if isinstance(up, (*LOOPS, *FUNCTIONS)):
            return bool(tests) and any(_varies(t, up) for t in tests)
        child = up
    return False


def _varies(test: ast.expr, around: ast.AST) -> bool:
    """Whether it reads what the loop or function gives a value, or calls something."""
    own = {n.id for n in walk(around, ast.Name) if isinstance(n.ctx, ast.Store)}
    calls = (n for n in walk(test, ast.Call) if "is_available" not in ast.unparse(n.func))
    return any(n.id in own for n in walk(test, ast.Name)) or any(True for _ in calls)

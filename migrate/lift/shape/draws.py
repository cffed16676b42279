"""What draws from an iterator by hand, and what may stand between its making and the draws."""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts

QUIET_METHODS = ("train", "eval", "zero_grad", "set_postfix", "set_description")
QUIET = ("time.", "datetime.")  # what may be called there


def of_builtin(call: ast.AST | None, name: str) -> ast.expr | None:
    """The it of `next(it)` and `next(it, None)`, the loader of `iter(loader)`."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != name:
        return None
    most = 2 if name == "next" else 1  # iter(ask, end) is another thing
    return call.args[0] if 0 < len(call.args) <= most and not call.keywords else None


def ends_with_it(s: ast.stmt) -> ast.ExceptHandler | None:
    """The `except StopIteration:` of a `try` that has nothing else."""
    if not isinstance(s, ast.Try) or s.orelse or s.finalbody or len(s.handlers) != 1:
        return None
    kind = s.handlers[0].type
    return s.handlers[0] if isinstance(kind, ast.Name) and kind.id == "StopIteration" else None


def is_quiet(facts: Facts, s: ast.stmt) -> bool:
    """Whether a statement draws nothing: a value that is no call, a time, a network's mode."""
    calls = list(walk(s, ast.Call))
    if isinstance(s, ast.Expr):
        c = s.value
        of_it = isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute) and c.func.attr in QUIET_METHODS
        return (of_it and calls == [c]) or isinstance(c, ast.Constant)
    return isinstance(s, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and all(
        (facts.names.resolve(c.func) or "").startswith(QUIET) for c in calls
    )

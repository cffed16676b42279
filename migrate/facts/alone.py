"""What only one process reaches: under a rank guard, behind a way out for the others, or called from there only."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .script import Facts

# the words by which scripts ask whether they are the process that writes
RANK_GUARD = re.compile(r"rank|is_global_zero|master|is_main|main_process", re.IGNORECASE)
WAYS_OUT = (ast.Return, ast.Continue, ast.Raise, ast.Break)


class Alone:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._open: set[ast.AST] = set()

    def reached_by(self, node: ast.AST) -> set[bool]:
        """{True} where one process comes alone, {False} where all come, both where it depends on the caller."""
        child = node
        for up in self.facts.scopes.ancestors(node):
            if isinstance(up, ast.If | ast.IfExp) and child is not up.test and _asks(up.test):
                return {True}
            for field in ("body", "orelse"):
                block = getattr(up, field, None)
                if isinstance(block, list) and child in block and any(_lets_go(s) for s in block[: block.index(child)]):
                    return {True}
            if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
                return self._called(up)
            child = up
        return {False}

    def _called(self, f: ast.FunctionDef | ast.AsyncFunctionDef) -> set[bool]:
        if f in self._open:
            return set()
        self._open.add(f)
        try:
            found = {True} if f.name in self.facts.guarded_elsewhere else set()
            for call in self.facts.walk(ast.Call):
                last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
                if last == f.name:
                    found |= self.reached_by(call)
            own = f.name not in self.facts.guarded_elsewhere and self.facts.is_library
            return found | ({False} if own or not found else set())
        finally:
            self._open.discard(f)


def asks_for_rank_zero(facts: Facts, node: ast.AST) -> bool:
    """Whether a rank guard stands around a node, in its own function."""
    child = node
    for up in facts.scopes.ancestors(node):
        if isinstance(up, ast.If | ast.IfExp) and child is not up.test and _asks(up.test):
            return True
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        child = up
    return False


def _asks(test: ast.expr) -> bool:
    return RANK_GUARD.search(ast.unparse(test)) is not None


def _lets_go(s: ast.stmt) -> bool:
    """`if rank != 0: return`"""
    return isinstance(s, ast.If) and not s.orelse and isinstance(s.body[-1], WAYS_OUT) and _asks(s.test)

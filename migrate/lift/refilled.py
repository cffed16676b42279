"""A list that is filled anew in every epoch: `memory.append(x)` before the batches, `self.memory = []` after them."""

from __future__ import annotations

import ast

from ..codemods.rank_guards import CHANGES
from ..facts.nodes import walk
from ..facts.script import Facts
from .shape.calls import called_below


def refilled(facts: Facts, loader: ast.expr, epoch_loop: ast.AST) -> bool:
    """Whether an epoch, or what it calls, gives what its batch loop goes over other elements, or another list."""
    reached: set[ast.AST] = set()
    for n in walk(loader):
        if isinstance(n, ast.Name):
            scope = facts.scopes.scope_of(n).lookup(n.id)
            same: list[ast.expr] = list(facts.scopes.reads(n.id, scope)) if scope is not None else []
        elif isinstance(n, ast.Attribute) and not _is_called(facts, n):
            same = list(facts.attributes.get(n.attr, ()))
        else:
            continue
        for other in same:
            if not _changes(facts, other):
                continue
            reached = reached or {epoch_loop, *called_below(facts, epoch_loop)}
            if any(up in reached for up in facts.scopes.ancestors(other)):
                return True
    return False


def _changes(facts: Facts, n: ast.expr) -> bool:
    """`memory.append(x)`, `memory[i] = x`, `del memory[:]`, `self.memory = []`."""
    if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load):
        return True
    up = facts.scopes.parents.get(n)
    if isinstance(up, ast.Subscript) and up.value is n:
        return not isinstance(up.ctx, ast.Load)
    return isinstance(up, ast.Attribute) and up.value is n and up.attr in CHANGES and _is_called(facts, up)


def _is_called(facts: Facts, n: ast.Attribute) -> bool:
    call = facts.scopes.parents.get(n)
    return isinstance(call, ast.Call) and call.func is n

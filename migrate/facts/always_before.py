"""Which statements have run wherever a later one runs, and which bindings of a name that leaves for a read."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .nodes import LOOPS

if TYPE_CHECKING:
    from .script import Facts


def always_before(facts: Facts, s: ast.stmt, later: ast.stmt) -> bool:
    """Whether one statement has run wherever a later one of its function runs."""
    block = facts.scopes.block_of(s)
    above = {later, *facts.scopes.ancestors(later)}
    return bool(block) and not above.isdisjoint(block[block.index(s) + 1 :])


def last_of(facts: Facts, read: ast.Name, stores: list[ast.AST]) -> list[ast.AST]:
    """The bindings that a read may see of these, without those that a later one above it takes the place of."""
    here = facts.scopes.statement_of(read)
    given = {store: facts.scopes.statement_of(store) for store in stores}
    taking = [s for s in given.values() if isinstance(s, ast.Assign) and always_before(facts, s, here)]
    if not taking:
        return stores
    last = max(taking, key=lambda s: s.lineno)
    around = (next((u for u in facts.scopes.ancestors(s) if isinstance(u, LOOPS)), None) for s in (last, here))
    again = len(set(around)) > 1  # what stands below the read in its own loop may be what it sees
    return [x for x, s in given.items() if last.lineno <= s.lineno and (again or s.lineno < here.lineno)]

"""A batch that a script draws above its loop, and each step draws the next one of: the first goes where the Module is.

x, y = next(batches)
while True:
    loss = criterion(net(x), y)
    x, y = next(batches)  # while the card works
"""

from __future__ import annotations

import ast

from ..facts.drawn import draw_of
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from .computed import given_above


def drawn_ahead(facts: Facts, name: str, scope: Scope, loop: ast.stmt) -> bool:
    """Whether a name holds such a batch, or a tensor of it, when the loop begins."""
    above = given_above(facts, name, scope, loop)
    if not above or not all(_is_drawn(s) for s in above):
        return False
    inside = [s for s in map(facts.scopes.statement_of, scope.stores[name]) if loop in facts.scopes.ancestors(s)]
    reads = [n for n in walk(loop, ast.Name) if n.id == name and isinstance(n.ctx, ast.Load)]
    return any(_is_drawn(s) for s in inside) and any(_is_tensor(facts, n) for n in reads)


def _is_drawn(s: ast.stmt) -> bool:
    """`x, y = next(batches)`"""
    drawn = s.value if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    return isinstance(drawn, ast.Call) and draw_of(drawn) is not None


def _is_tensor(facts: Facts, read: ast.Name) -> bool:
    """Whether a network, or a function that is one, is given it as it is: `torch.tensor(x)` takes a list."""
    call = facts.scopes.parents.get(read)
    if not isinstance(call, ast.Call) or read not in call.args:
        return False
    full = facts.names.resolve(call.func)
    return facts.loops.is_model_call(call) if full is None else full.startswith("torch.nn.functional.")

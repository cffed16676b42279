"""A function whose backward() is for the gradient of what it gives a network, as an attack does: it trains nothing.

def attack(model, x, y):
    delta = torch.zeros_like(x, requires_grad=True)
    for _ in range(10):
        F.cross_entropy(model(x + delta), y).backward()
        delta.data += 0.01 * delta.grad.sign()
        delta.grad.zero_()
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts


def is_of_inputs(facts: Facts, backward: ast.Call) -> bool:
    """Whether the function around calls a network that it is given, steps no optimizer, and asks tensors that it made
    itself for their gradients, and nothing else.
    """
    f = next((up for up in facts.scopes.ancestors(backward) if isinstance(up, ast.FunctionDef)), None)
    if f is None or any(n.attr == "step" for n in walk(f, ast.Attribute)):
        return False
    own = facts.scopes.by_node[f]
    called = {n.func.id for n in walk(f, ast.Call) if isinstance(n.func, ast.Name) and n.args}
    if not any(name in own.params and name not in own.stores for name in called):
        return False
    asked = [n.value for n in walk(f, ast.Attribute) if n.attr == "grad" and facts.names.resolve(n) is None]
    return bool(asked) and all(isinstance(n, ast.Name) and _is_made_here(facts, f, n.id) for n in asked)


def _is_made_here(facts: Facts, f: ast.FunctionDef, name: str) -> bool:
    """Whether statements of the function alone give a name its values, and no loop over parameters does."""
    stores = facts.scopes.by_node[f].stores.get(name, ())
    return bool(stores) and all(isinstance(facts.scopes.parents.get(s), ast.Assign | ast.AnnAssign) for s in stores)

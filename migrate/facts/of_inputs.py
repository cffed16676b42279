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

PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
ASKING = ("requires_grad", "requires_grad_", "retain_grad")


def is_of_inputs(facts: Facts, backward: ast.Call) -> bool:
    """Whether the function around calls a network that it is given, or that its object has, steps no optimizer, and
    asks inputs for their gradients, and nothing else.
    """
    f = next((up for up in facts.scopes.ancestors(backward) if isinstance(up, ast.FunctionDef)), None)
    if f is None or any(n.attr == "step" for n in walk(f, ast.Attribute)):
        return False
    given = (n for n in walk(f, ast.Call) if n.args and not isinstance(facts.scopes.parents.get(n), ast.Expr))
    if not any(_may_be_network(facts, f, n.func) for n in given):
        return False
    asked = [n.value for n in walk(f, ast.Attribute) if n.attr == "grad" and facts.names.resolve(n) is None]
    names = [n.id for n in asked if isinstance(n, ast.Name)]
    return 0 < len(names) == len(asked) and all(_is_made_here(facts, f, n) or _asks_for_one(facts, f, n) for n in names)


def _may_be_network(facts: Facts, f: ast.FunctionDef, called: ast.expr) -> bool:
    """`model(x)` of a parameter, or `self.model(x)` of what the object keeps."""
    own = facts.scopes.by_node[f]
    if isinstance(called, ast.Attribute):
        c = facts.classes.holder(f)
        of_self = c is not None and getattr(called.value, "id", "") == next(iter(own.params), None)
        return of_self and c is not None and facts.classes.method(c, called.attr) is None
    return isinstance(called, ast.Name) and called.id in own.params and called.id not in own.stores


def _is_made_here(facts: Facts, f: ast.FunctionDef, name: str) -> bool:
    """Whether statements of the function alone give a name its values, and no loop over parameters does."""
    stores = [facts.scopes.parents.get(s) for s in facts.scopes.by_node[f].stores.get(name, ())]
    values = [s.value for s in stores if isinstance(s, ast.Assign | ast.AnnAssign)]
    weights = (v for v in values if isinstance(v, ast.Call) and facts.names.resolve(v.func) in PARAMETERS)
    return 0 < len(values) == len(stores) and next(weights, None) is None


def _asks_for_one(facts: Facts, f: ast.FunctionDef, name: str) -> bool:
    """Whether the function says that an argument, or a part of a batch, is to have a gradient: weights have one."""
    stores = facts.scopes.by_node[f].stores.get(name, ())
    loops = [up for s in stores for up in facts.scopes.ancestors(s) if isinstance(up, ast.For) and s in walk(up.target)]
    given = name in facts.scopes.by_node[f].params or any("param" not in facts.text.get(loop.iter) for loop in loops)
    asking = (n for n in walk(f, ast.Attribute) if n.attr in ASKING)
    return given and any(isinstance(n.value, ast.Name) and n.value.id == name for n in asking)

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
    """Whether the function around calls a network that it is given, or that its object has, and asks inputs for their
    gradients, and nothing else: by `delta.grad`, or with an optimizer of `[delta]` alone beside another training.

    The same of a `step()`, where that is such an optimizer's.
    """
    f = next((up for up in facts.scopes.ancestors(backward) if isinstance(up, ast.FunctionDef)), None)
    key = ("of inputs", f)
    if key not in facts.answers:
        facts.answers[key] = f is not None and _searches(facts, f)
    found: bool = facts.answers[key]
    return found


def _searches(facts: Facts, f: ast.FunctionDef) -> bool:
    steps = [n for n in walk(f, ast.Attribute) if n.attr == "step"]
    if steps and not (_is_beside_another(facts, f) and all(_is_of_made(facts, f, n.value) for n in steps)):
        return False
    given = (n for n in walk(f, ast.Call) if n.args and not isinstance(facts.scopes.parents.get(n), ast.Expr))
    if not any(_may_be_network(facts, f, n.func) for n in given):
        return False
    asked = [n.value for n in walk(f, ast.Attribute) if n.attr == "grad" and facts.names.resolve(n) is None]
    names = [n.id for n in asked if isinstance(n, ast.Name)]
    of_inputs = len(names) == len(asked) and all(_is_input(facts, f, name) for name in names)
    return of_inputs and bool(names or steps)


def _is_beside_another(facts: Facts, f: ast.FunctionDef) -> bool:
    """Whether other files call the function, or this one has a training elsewhere: else it is the training itself."""
    within = set(walk(f, ast.Call))
    return facts.is_library or any(c not in within for c in facts.calls_of("backward"))


def _is_of_made(facts: Facts, f: ast.FunctionDef, optimizer: ast.expr) -> bool:
    """Whether the function makes it of inputs, which it lists: `optimizer = optim.SGD([delta], lr=0.1)`."""
    values = facts.devices.assigned(optimizer.id, facts.scopes.by_node[f]) if isinstance(optimizer, ast.Name) else None
    for made in values or ():
        of = made.args[0] if isinstance(made, ast.Call) and made.args else None
        if not isinstance(made, ast.Call) or not (facts.names.resolve(made.func) or "").startswith("torch.optim."):
            return False
        listed = of.elts if isinstance(of, (ast.List, ast.Tuple)) else []
        if not listed or not all(isinstance(e, ast.Name) and _is_input(facts, f, e.id) for e in listed):
            return False
    return bool(values)


def _is_input(facts: Facts, f: ast.FunctionDef, name: str) -> bool:
    return _is_made_here(facts, f, name) or _asks_for_one(facts, f, name)


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

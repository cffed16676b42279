"""Calls that make an optimizer: of torch.optim, or by what is asked of what they give, where the class does not show.

`spec.constructor(net.parameters(), **spec.kwargs)`, `getattr(torch.optim, name)(params)`, `RAdam(params)`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .nodes import walk
from .other_files import found_there

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .script import Facts

ASKED = ("step", "zero_grad")
OF_PARAMETERS = ("parameters", "named_parameters")


def makes_optimizer(facts: Facts, call: ast.Call) -> bool:
    """`torch.optim.SGD(...)`"""
    full = facts.names.resolve(call.func) or ""
    if not full.startswith("torch.optim.") or ".lr_scheduler" in full or "swa_utils" in full:
        return False
    return full.rsplit(".", 1)[-1][:1].isupper()


def is_stepped(facts: Facts, call: ast.Call) -> bool:
    """Whether a call is given parameters, and what it gives is stepped and has its gradients zeroed, by its name."""
    s = facts.scopes.parents.get(call)
    target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    if not isinstance(target, (ast.Name, ast.Attribute)) or (facts.names.resolve(call.func) or "").startswith("torch."):
        return False
    if not all(any(True for _ in _asks(facts, target, method)) for method in ASKED):
        return False
    given = [e for a in (*call.args, *(k.value for k in call.keywords)) for e in _values(facts, a)]
    nodes = [n for e in given for n in walk(e, ast.Call)]
    if any(makes_optimizer(facts, n) for n in nodes) or _makes_there(facts, call):
        return False
    return any(isinstance(n.func, ast.Attribute) and n.func.attr in OF_PARAMETERS for n in nodes)


def _asks(facts: Facts, target: ast.Name | ast.Attribute, method: str) -> Iterator[ast.Call]:
    """`optimizer.step()`, of the name, or of an attribute of that name whatever has it."""
    for call in facts.calls_of(method):
        of = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(target, ast.Attribute):
            found = isinstance(of, ast.Attribute) and of.attr == target.attr
        else:
            scopes = facts.scopes
            home = scopes.scope_of(target).lookup(target.id)
            found = isinstance(of, ast.Name) and of.id == target.id and scopes.scope_of(of).lookup(of.id) is home
        if found:
            yield call


def _values(facts: Facts, e: ast.expr) -> list[ast.expr]:
    """What is given itself, and what assignments give a name."""
    scope = facts.scopes.scope_of(e).lookup(e.id) if isinstance(e, ast.Name) else None
    values = facts.devices.assigned(e.id, scope) if scope is not None and isinstance(e, ast.Name) else None
    return values or [e]


def _makes_there(facts: Facts, call: ast.Call) -> bool:
    """Whether a function of the project makes it of torch.optim: it is told there."""
    f: ast.AST | None = facts.devices.function_of(call)
    there = facts
    if f is None and facts.others and (found := found_there(facts, call.func)) is not None:
        there, f = found[1], found[2]
    calls = (n for n in walk(f, ast.Call)) if isinstance(f, ast.FunctionDef) else ()
    return any(makes_optimizer(there, n) for n in calls)

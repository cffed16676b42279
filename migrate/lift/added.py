"""Gradients that a step has from elsewhere than its own backward(): a Trainer does not take them, or not their mean."""

from __future__ import annotations

import ast

from ..facts.arguments import given_to
from ..facts.nodes import walk
from ..facts.script import Facts
from .counted import last_name
from .differentiating import adds_gradients
from .nodes import is_call_of, method_call
from .recipe import CannotLift, DataPass


def check_added(facts: Facts, train: DataPass, around: list[ast.stmt]) -> None:
    """Raise where what a step calls, or what the epoch does around the steps, calls a backward() of its own, as an
    attack does, and nothing sets the gradients to zero between that and the step.
    """
    beyond = (c for c in facts.calls_of("backward") if train.loop not in facts.scopes.ancestors(c))
    if next(beyond, None) is None and not any(".backward(" in other.text for other in facts.others):
        return
    body = train.body
    holders = set(facts.scopes.ancestors(train.loop))
    networks = {c.func.id for s in body for c in walk(s, ast.Call) if isinstance(c.func, ast.Name)}
    for i, s in enumerate(body):
        if _takes(s, "backward") or _are_cleared([*body[i + 1 :], *body[:i]]):
            continue
        if adds_gradients(facts, [s], holders) or any(_hands_on(facts, c, networks) for c in walk(s, ast.Call)):
            raise _left(facts, s)
    beside = adds_gradients(facts, [*train.before, *train.after, *around], holders)
    if beside is not None and not _are_cleared(body):
        raise _left(facts, beside)


def _hands_on(facts: Facts, call: ast.Call, networks: set[str]) -> bool:
    """`search(model, x)` of a name that is given a function, and of a network that the step calls itself."""
    scope = facts.scopes.scope_of(call.func).lookup(call.func.id) if isinstance(call.func, ast.Name) else None
    if scope is None or not isinstance(call.func, ast.Name) or facts.devices.function_of(call) is not None:
        return False
    stores = scope.stores.get(call.func.id, ())
    values = facts.devices.assigned(call.func.id, scope) or []
    made = bool(values) and all(isinstance(v, ast.Call) and last_name(v)[:1].isupper() for v in values)
    named = call.func.id in scope.params or any(isinstance(s, ast.Name) for s in stores)
    return named and not made and any(isinstance(a, ast.Name) and a.id in networks for a in given_to(call))


def _are_cleared(ahead: list[ast.stmt]) -> bool:
    """Whether gradients are set to zero before a statement steps."""
    for s in ahead:
        if method_call(s, "zero_grad"):
            return True
        if _takes(s, "step"):
            return False
    return False


def _takes(s: ast.stmt, method: str) -> bool:
    return any(is_call_of(n, method) for n in walk(s, ast.Call))


def _left(facts: Facts, s: ast.AST) -> CannotLift:
    return CannotLift(s, f"`{facts.short(s)}` may leave gradients in what is trained, and the step takes them, too")

"""Schedules on a metric, stepped once an epoch: the Trainer steps them when the epoch's hooks are over, by its log."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..facts.arguments import given_to
from ..facts.nodes import walk
from ..facts.script import Facts
from .holders import reaches_modules
from .loaders import values_of
from .nodes import is_call_of, local_function, method_call, names_below
from .optimizers import is_optimizer, is_plateau, is_scheduler

METRIC = "metrics"  # the parameter of ReduceLROnPlateau.step
OTHERWISE = "monitored"  # what a value without a name of its own is logged as


def metric_of(call: ast.Call) -> ast.expr | None:
    """The one argument of `scheduler.step(metric)`."""
    if len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred):
        return call.args[0]
    return call.keywords[0].value if not call.args and [k.arg for k in call.keywords] == [METRIC] else None


def monitored(facts: Facts, statements: list[ast.stmt], epoch: list[ast.stmt]) -> dict[ast.stmt, str]:
    """Of the statements that end an epoch those that step a schedule on a metric, with the name to log it by.

    Only where every one of an `epoch` comes by them, and nothing after them reads what they change.
    """
    found: dict[ast.stmt, str] = {}
    before = [s for s in epoch if s not in statements]
    for i, s in enumerate(statements):
        m = method_call(s, "step")
        value = metric_of(m[1]) if m is not None else None
        if m is None or value is None or not is_plateau(facts, s, m[0]):
            continue
        leaves = any(_leaves(x) for x in (*before, *statements[:i]))
        if leaves or any(_reads_rates(facts, x) for x in statements[i + 1 :]) or found:
            return {}
        found[s] = _key(value)
    return found


def _key(value: ast.expr) -> str:
    if isinstance(value, ast.Attribute):
        return value.attr
    return value.id if isinstance(value, ast.Name) else OTHERWISE


def by_log(facts: Facts, s: ast.stmt, key: str) -> dict[tuple[int, int], str]:
    """`scheduler.step(loss)` to `self.log("loss", loss)`."""
    assert isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)
    value = metric_of(s.value)
    assert value is not None
    return {(facts.text.span(s)[0], facts.text.span(value)[0]): f'self.log("{key}", '}


def unread(monitored: Iterable[ast.stmt]) -> Iterator[ast.Name]:
    """The names of the schedules in the statements that are logs now."""
    for s in monitored:
        m = method_call(s, "step")
        assert m is not None and isinstance(m[1].func, ast.Attribute) and isinstance(m[1].func.value, ast.Name)
        yield m[1].func.value


def _leaves(s: ast.stmt) -> bool:
    """Whether a statement may end the epoch, or the epochs."""
    stack: list[ast.AST] = [s]
    while stack:
        n = stack.pop()
        if isinstance(n, (ast.Break, ast.Continue, ast.Return)):
            return True
        if not isinstance(n, (ast.For, ast.While, ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            stack += ast.iter_child_nodes(n)
    return False


def _reads_rates(facts: Facts, s: ast.stmt) -> bool:
    """Whether a statement may read an optimizer or a schedule, through functions and objects too."""
    rates = {n for n in _known_there(facts, s) if is_optimizer(facts, s, n) or is_scheduler(facts, s, n)}
    for n in walk(s):
        if isinstance(n, ast.Name):
            f = local_function(facts, n)
            if rates & ({n.id} if f is None else names_below(facts, f)) or _holds(facts, n, rates):
                return True
        elif isinstance(n, ast.Attribute) and n.attr in ("param_groups", "get_last_lr"):
            return True
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and reaches_modules(facts, n, rates):
            return not is_call_of(n, "state_dict")
    return False


def _known_there(facts: Facts, s: ast.stmt) -> set[str]:
    here = facts.scopes.scope_of(s)
    return {*here.stores, *here.params, *facts.scopes.module.stores}


def _holds(facts: Facts, n: ast.Name, rates: set[str]) -> bool:
    """Whether what has this name was made with an optimizer, or a schedule: `saver = Saver(net, optimizer)`."""
    scope = facts.scopes.scope_of(n).lookup(n.id)
    made = (v for v in (values_of(facts, n.id, scope) if scope is not None else []) if isinstance(v, ast.Call))
    given = (a for v in made for a in given_to(v))
    return any(isinstance(x, ast.Name) and x.id in rates for a in given for x in walk(a))

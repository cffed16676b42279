"""How losses of torch become one number: by a mean, by a sum, or by a mean that weighs what it is about."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .arguments import argument_at

if TYPE_CHECKING:
    from .script import Facts

# where weights and an index that is left out stand: their means are over the weights of the targets that count
WEIGHED = {
    "cross_entropy": {"weight": 2, "ignore_index": 4}, "nll_loss": {"weight": 2, "ignore_index": 4},
    "CrossEntropyLoss": {"weight": 0, "ignore_index": 2}, "NLLLoss": {"weight": 0, "ignore_index": 2},
    "NLLLoss2d": {"weight": 0, "ignore_index": 2}, "mse_loss": {"weight": 5}, "l1_loss": {"weight": 5},
    "huber_loss": {"weight": 4},
}  # fmt: skip


def asked(calls: list[ast.Call], constant: Callable[[ast.expr | None], Any]) -> str | None:
    """What `reduction=` or the old `size_average=` says."""
    for k in (k for call in calls for k in call.keywords):
        value = constant(k.value)
        if k.arg == "reduction" and value in ("sum", "mean", "none"):
            return str(value)
        if k.arg == "reduction" and value == "batchmean":
            return "mean"
        if k.arg == "reduce" and value is False:
            return "none"
        if k.arg == "size_average" and value in (True, False):
            return "mean" if value else "sum"
    return None


def weighs(facts: Facts, calls: list[ast.Call], constant: Callable[[ast.expr | None], Any]) -> bool:
    """Whether the mean of a loss of torch is one over the weights of its targets, or over those that count."""
    for call in calls:
        full, shift = facts.names.resolve(call.func) or "", 0
        if full == "functools.partial" and call.args:
            full, shift = facts.names.resolve(call.args[0]) or "", 1
        last = full.rpartition(".")[2]
        places = WEIGHED.get(last)
        if places is None:
            known = [k.arg for c in calls for k in c.keywords]
            if any(a in ("weight", "ignore_index") for a in known) and any(_is_weighed(facts, c) for c in calls):
                return True
            continue
        for name, place in places.items():
            value = argument_at(call, name, place + shift)
            if value is not None and constant(value) is not None:
                return True
        if any(k.arg is None and _spells(facts, k.value, places) for k in call.keywords):
            return True
    return False


def _is_weighed(facts: Facts, call: ast.Call) -> bool:
    """A call by another name of `F.cross_entropy`."""
    if not isinstance(call.func, ast.Name):
        return False
    scope = facts.scopes.scope_of(call.func).lookup(call.func.id)
    values = facts.devices.assigned(call.func.id, scope) if scope is not None else None
    return any((facts.names.resolve(v) or "").rpartition(".")[2] in WEIGHED for v in values or ())


def _spells(facts: Facts, value: ast.expr, names: dict[str, int]) -> bool:
    """Whether a dictionary that is spread over a call has one of the names."""
    if isinstance(value, ast.Name):
        scope = facts.scopes.scope_of(value).lookup(value.id)
        values = facts.devices.assigned(value.id, scope) if scope is not None else None
        value = values[0] if values and len(values) == 1 else value
    if isinstance(value, ast.Dict):
        return any(isinstance(k, ast.Constant) and k.value in names for k in value.keys)
    return isinstance(value, ast.Call) and any(k.arg in names for k in value.keywords)

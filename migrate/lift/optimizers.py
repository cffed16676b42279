"""Whether a name is shown to be an optimizer or a schedule of torch."""

from __future__ import annotations

import ast

from ..facts.script import Facts
from .loaders import values_of


def is_optimizer(facts: Facts, at: ast.AST, name: str, depth: int = 0) -> bool:
    """Whether the name, read at this node, is only ever an optimizer of torch.optim (or of a class named like one)."""
    scope = facts.scopes.scope_of(at).lookup(name)
    if scope is None or depth > 6:
        return False
    values = values_of(facts, name, scope, 0)
    return bool(values) and all(_makes(facts, v, _is_optimizer_name, depth) for v in values)


def is_scheduler(facts: Facts, at: ast.AST, name: str, depth: int = 0) -> bool:
    scope = facts.scopes.scope_of(at).lookup(name)
    if scope is None or depth > 6:
        return False
    values = values_of(facts, name, scope, 0)
    return bool(values) and all(_makes(facts, v, _is_scheduler_name, depth) for v in values)


def _makes(facts: Facts, value: ast.expr, test: object, depth: int) -> bool:
    assert callable(test)
    if isinstance(value, ast.Call):
        return bool(test(facts.names.resolve(value.func) or ast.unparse(value.func)))
    if isinstance(value, ast.IfExp):
        return _makes(facts, value.body, test, depth) and _makes(facts, value.orelse, test, depth)
    if isinstance(value, ast.Name):
        again = is_optimizer if test is _is_optimizer_name else is_scheduler
        return again(facts, value, value.id, depth + 1)
    return False


def _is_optimizer_name(full: str) -> bool:
    last = full.split(".")[-1]
    return (full.startswith("torch.optim.") and ".lr_scheduler" not in full) or last in ("AdamW", "Adam", "SGD")


def _is_scheduler_name(full: str) -> bool:
    return full.startswith("torch.optim.lr_scheduler.")

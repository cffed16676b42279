"""What of the module level belongs to the Module where its loop stands in a function: what the steps work with."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from ..facts.nodes import walk
from ..facts.script import Facts
from .networks import made_network

WORKED_WITH = ("train", "eval", "parameters", "state_dict", "step", "zero_grad")


def worked_with(facts: Facts, statements: Iterable[ast.stmt], given: Callable[[ast.Name], ast.Name]) -> set[str]:
    """Models, optimizers, schedulers and parameters of the module level, by name. `given`: the caller's own name for
    what a parameter of a function is given.
    """
    found, written = set(), set()
    for n in (n for s in statements for n in walk(s)):
        name: ast.expr | None = None
        if isinstance(n, ast.Call):
            called = n.func
            known = isinstance(called, ast.Attribute) and called.attr in WORKED_WITH
            name = called.value if isinstance(called, ast.Attribute) and known else called
        elif isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
            written.add(n.id)
        elif isinstance(n, ast.Name) and _is_learned(facts, given(n)):
            name = n
        if isinstance(name, ast.Name):
            name = given(name)
            found |= {name.id} if facts.scopes.scope_of(name).lookup(name.id) is facts.scopes.module else set()
    return found - written


def _is_learned(facts: Facts, name: ast.Name) -> bool:
    """A network, or `log_var = nn.Parameter(torch.zeros(1))` and lists of such."""
    module = facts.scopes.module
    if facts.scopes.scope_of(name).lookup(name.id) is not module:
        return False
    made = facts.devices.assigned(name.id, module) or []
    full = [facts.names.resolve(v.func) or "" if isinstance(v, ast.Call) else "" for v in made]
    parameters = bool(full) and all(f.startswith("torch.nn.Parameter") for f in full)  # of a branch each, too
    return parameters or made_network(facts, name.id, module) is not None

"""`net = net.train()` is `net.train()`: a module gives itself back, and nothing is carried from batch to batch."""

from __future__ import annotations

import ast

from ...facts.script import Facts
from .edits import Edits

MODES = ("train", "eval")
OF_MODULES = ("parameters", "named_parameters", "state_dict", "load_state_dict", "zero_grad")


def switch_in_place(facts: Facts) -> str | None:
    """The text with such statements as plain switches; None where there are none."""
    edits = Edits(facts)
    for s in facts.walk(ast.Assign):
        target = s.targets[0] if len(s.targets) == 1 else None
        if isinstance(target, ast.Name) and _switched(s.value) == target.id and _is_module(facts, target):
            edits.replace_node(s, facts.text.get(s.value))
    return edits.done() if edits.spans else None


def _switched(value: ast.expr) -> str | None:
    """The name of `net` in `net.eval()`."""
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in MODES):
        return None
    return value.func.value.id if isinstance(value.func.value, ast.Name) else None


def _is_module(facts: Facts, name: ast.Name) -> bool:
    """Something asks the same variable for what only modules have."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    return scope is not None and any(
        isinstance(up := facts.scopes.parents.get(read), ast.Attribute) and up.attr in OF_MODULES
        for read in facts.scopes.reads(name.id, scope)
    )

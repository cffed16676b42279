"""Whether a file trains: whether it calls backward() of what is differentiated."""

from __future__ import annotations

import ast

from .own_methods import differentiates_nothing
from .script import Facts


def trains(facts: Facts) -> bool:
    return any(
        isinstance(c.func, ast.Attribute)
        and c.func.attr == "backward"
        and not (_in_autograd_function(facts, c) or differentiates_nothing(facts, c.func))
        for c in facts.walk(ast.Call)
    )


def _in_autograd_function(facts: Facts, node: ast.AST) -> bool:
    return any(
        isinstance(up, ast.ClassDef) and any(facts.names.resolve(b) == "torch.autograd.Function" for b in up.bases)
        for up in facts.scopes.ancestors(node)
    )

"""A range that has a name, and what is asked for an iterator: `epochs = range(n)`, `for epoch in iter(epochs):`."""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts
from ..loaders import values_of
from .bars import is_steady
from .edits import Edits
from .loops import epochs_of, step_loop


def count_there(facts: Facts) -> str | None:
    """The text where the loops that train go over what the name stands for, and over what is iterated, themselves."""
    batches = step_loop(facts)
    edits = Edits(facts)
    for loop in (batches, epochs_of(facts, batches)) if isinstance(batches, ast.For) else ():
        if not isinstance(loop, ast.For):
            continue
        counts = isinstance(loop.iter, ast.Call) and is_builtin(facts, loop.iter, "enumerate") and loop.iter.args
        at = counts[0] if counts else loop.iter
        if (under := _under(facts, at)) is not None:
            edits.replace_node(at, under)
    return edits.done() if edits.spans else None


def _under(facts: Facts, at: ast.expr) -> str | None:
    over = at
    while isinstance(over, ast.Call) and is_builtin(facts, over, "iter") and len(over.args) == 1 and not over.keywords:
        over = over.args[0]
    if isinstance(over, ast.Name) and (counts := _range_of(facts, over)) is not None:
        return counts
    return facts.text.get(over) if over is not at else None


def _range_of(facts: Facts, name: ast.Name) -> str | None:
    """The range that is all that a name is given, as it is counted where it is read; None where it has a step."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    values = values_of(facts, name.id, scope) if scope is not None and name.id not in scope.params else []
    made = values[0] if len(values) == 1 else None
    if not isinstance(made, ast.Call) or not is_builtin(facts, made, "range") or len(made.args) not in (1, 2):
        return None
    if is_steady(facts, made.args) and not any(
        walk(a, ast.Attribute) or walk(a, ast.Subscript) or walk(a, ast.Call) for a in made.args
    ):
        return facts.text.get(made)
    return f"range({f'{name.id}.start, ' if len(made.args) == 2 else ''}{name.id}.stop)"


def is_builtin(facts: Facts, call: ast.expr, name: str) -> bool:
    """Whether Python's own function of that name is called."""
    f = call.func if isinstance(call, ast.Call) else None
    return isinstance(f, ast.Name) and f.id == name and facts.scopes.scope_of(f).lookup(name) is None

"""Weights that a script hands to an object one after another before it trains, which keeps a copy of each.

`for name, p in net.named_parameters(): ema.register(name, p.data)`, of a class with `self.shadow[name] = val.clone()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .arguments import argument
from .copies import COPIES, before_training, goes_elsewhere, last_name, of_weights
from .nodes import walk
from .script import Facts, once_a_file


@once_a_file
def handed(facts: Facts) -> list[tuple[ast.Call, str]]:
    """The calls of methods of a name that are given weights, and the name, where they run before the training loop."""
    found = []
    for loop in facts.walk(ast.For):
        if not of_weights(loop.iter) or goes_elsewhere(facts, loop):
            continue
        names = {n.id for n in walk(loop.target, ast.Name)}
        for call in (c for s in loop.body for c in walk(s, ast.Call)):
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            given = {n.id for a in call.args for n in walk(a, ast.Name)}
            if isinstance(owner, ast.Name) and owner.id not in names and given & names and before_training(facts, loop):
                found.append((call, owner.id))
    return found


def copies_of_given(call: ast.Call, there: Facts, c: ast.ClassDef) -> Iterator[ast.Call]:
    """The copies of what such a call gives that the method of a class makes."""
    assert isinstance(call.func, ast.Attribute)
    f = there.classes.methods(c).get(call.func.attr)
    if f is None:
        return
    for copied in walk(f, ast.Call):
        of = copied.func.value if isinstance(copied.func, ast.Attribute) else None
        of = copied.args[0] if copied.args and there.names.resolve(copied.func) is not None else of
        while isinstance(of, (ast.Attribute, ast.Call)):
            of = of.func if isinstance(of, ast.Call) else of.value
        given = argument(call, f, of.id, bound=True) if isinstance(of, ast.Name) else None
        if last_name(copied.func) in COPIES and given and not goes_elsewhere(there, there.scopes.statement_of(copied)):
            yield copied

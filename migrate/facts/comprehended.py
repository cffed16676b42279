"""Comprehensions over loaders: what they draw is placed as the batches of a loop are, where they work with a network.

sum((net(x.to(device)).argmax(1).cpu() == y).sum().item() for x, y in loader)
"""

from __future__ import annotations

import ast
import builtins

from .gone_through import drawn_from
from .loops import unwrapped
from .nodes import walk
from .script import Facts, once_a_file
from .tensor_methods import root

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
DEPTH = 4  # of functions that hand a loader on


def draws_part(facts: Facts, name: ast.Name) -> bool:
    """Whether a comprehension gives a name a part of a loader's batch: not the numbers that enumerate() gives."""
    generator = facts.scopes.generator_of(name)
    if generator is None:
        return False
    store = next(n for n in walk(generator.target, ast.Name) if n.id == name.id)
    drawn = drawn_from(facts, generator, store)
    return drawn is not None and _is_loader(facts, drawn)


def in_comprehension(facts: Facts, node: ast.AST) -> bool:
    """Whether a node runs for each batch of a comprehension that moves these, or gives them to what it calls."""
    for up in facts.scopes.ancestors(node):
        if isinstance(up, (ast.stmt, ast.Lambda)):
            return False
        if isinstance(up, Comprehension) and _evaluates(facts, up):
            return True
    return False


def in_loop(facts: Facts, node: ast.AST) -> bool:
    """Whether a node runs for each batch of a loop that moves these for a network by whatever name."""
    return any(isinstance(up, ast.For) and moves_batches(facts, up) for up in facts.scopes.ancestors(node))


@once_a_file
def moves_batches(facts: Facts, loop: ast.For) -> bool:
    """Whether a loop over a loader moves a part of its batches."""
    if not _is_loader(facts, unwrapped(loop.iter)):
        return False
    drawn = {n.id for n in walk(loop.target, ast.Name)}
    moved = (facts.devices.moved(n) for n in walk(loop, ast.Call))
    return any((of := root(m)) is not None and of.id in drawn for m in moved if m is not None)


@once_a_file
def _evaluates(facts: Facts, around: Comprehension) -> bool:
    if not any(_is_loader(facts, unwrapped(g.iter)) for g in around.generators):
        return False
    return any(_works_on_part(facts, n) for n in walk(around, ast.Call))


def _works_on_part(facts: Facts, call: ast.Call) -> bool:
    """`x.to(device)`, `net(x)`; not `len(x)`."""
    if facts.devices.moved(call) is not None:
        return True
    own = facts.names.resolve(call.func) is None and not hasattr(builtins, getattr(call.func, "id", ""))
    names = (root(a) for a in call.args) if own else ()
    return any(n is not None and draws_part(facts, n) for n in names)


def _is_loader(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """By what shows that, or by what every call of the function around gives it."""
    if facts.loops.is_loader(node):
        return True
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) and depth < DEPTH else None
    if scope is None or not isinstance(node, ast.Name) or node.id not in scope.params or node.id in scope.stores:
        return False
    given = facts.devices.given(scope, node.id)
    return bool(given) and all(_is_loader(facts, v, depth + 1) for v in given or ())

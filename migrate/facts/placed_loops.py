"""Loops whose elements the runtime places: those over batches, and others that `on_device` is put around.

Within a step nothing places what a loop goes through but the batch that it is taken from: `for x, y in examples():`
gives tensors there that the script moves itself. Below the training, and in functions, `on_device(examples())` does.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from .gone_through import Around, drawn_from
from .loops import TRAINS
from .tensor_methods import root

if TYPE_CHECKING:
    from .script import Facts

Display = ast.List | ast.Tuple | ast.Set
OF_TENSORS = ("torch.", "torchvision.")


def gives_placed(facts: Facts, around: Around, drawn: ast.expr) -> bool:
    """Whether what a loop draws from a source is placed: by a Trainer, by `on_device`, or with what it is a part of."""
    if isinstance(drawn, Display) or _is_bound_in_step(facts, around):
        return facts.placed.by_runtime(drawn)
    return True


def in_step(facts: Facts, around: ast.AST) -> bool:
    """Whether a loop stands in one over batches."""
    above = (up for up in facts.scopes.ancestors(around) if isinstance(up, (ast.For, ast.While)))
    return any(up in facts.loops.hot_loops or _goes_over_loader(facts, up) for up in above)


def may_be_any(facts: Facts, given: ast.expr) -> bool:
    """Whether a value is, or is taken from, an element of a loop that does not show that it goes over batches.

    `on_device` places it where it is a tensor; a function may be given a number, or a name, and make the tensors.
    """
    name = root(given)
    if name is None:
        return False
    generator = facts.scopes.generator_of(name)
    scope = facts.scopes.scope_of(name).lookup(name.id)
    if generator is not None:
        return _gives_any(facts, generator, None)
    stores = facts.placed.reaching(name, scope) if scope is not None and name.id not in scope.params else []
    return any((loop := _loop_of(facts, s)) is not None and _gives_any(facts, loop, s) for s in stores)


def is_of_tensors(facts: Facts, func: ast.expr) -> bool:
    """Whether a function gives what it is given, or computes from it: those of torch, and Python's own."""
    full = facts.names.resolve(func)
    if full is None and isinstance(func, ast.Name):
        return hasattr(builtins, func.id)
    return (full or "").startswith(OF_TENSORS)


def _gives_any(facts: Facts, around: Around, store: ast.AST | None) -> bool:
    if facts.loops.hot_loops.get(around) == TRAINS or _goes_over_loader(facts, around):
        return False
    drawn = around.iter if store is None else drawn_from(facts, around, store)
    if drawn is None:
        return False
    return not (isinstance(drawn, Display) or _is_bound_in_step(facts, around))


def _is_bound_in_step(facts: Facts, around: Around) -> bool:
    """Whether a loop within a step is none over batches itself."""
    return around not in facts.loops.hot_loops and not _goes_over_loader(facts, around) and in_step(facts, around)


def _goes_over_loader(facts: Facts, loop: ast.AST) -> bool:
    return isinstance(loop, Around) and facts.loops.is_loader(loop.iter)


def _loop_of(facts: Facts, store: ast.AST) -> Around | None:
    up: ast.AST | None = store
    while isinstance(up, (ast.Name, ast.Tuple, ast.List, ast.Starred)):
        up = facts.scopes.parents.get(up)
    return up if isinstance(up, Around) else None

"""Functions of the script that the lifted code calls: they must not read or write what has become an attribute."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.script import Facts
from .chunks import Binder, Chunk, Variable, Variables, batch_names
from .epochs import free_epoch_name
from .nodes import local_function
from .recipe import CannotLift, Recipe
from .seen_by_others import seen_by_others


def check_functions(facts: Facts, recipe: Recipe, binder: Binder, chunks: list[Chunk], variables: Variables) -> bool:
    """Raise where a function that stays sees the trunk's own variable, and the loop's is an attribute by now.

    Gives back whether one reads the number of the epoch, which a Module can leave the global that it was.
    """
    lifted = {p.function for p in (recipe.train, recipe.evaluate) if p is not None and p.function is not None}
    changed = {recipe.epoch}
    for chunk in chunks:
        for n in (*_names(chunk), *_of_loop(chunk)):
            var = binder.variable(n)
            if isinstance(var, Variable) and not var.owner and not isinstance(n.ctx, ast.Load):
                changed.add(var.name)
    stays = binder.trunk_scope is facts.scopes.module and not recipe.reloads
    shown = recipe.epoch if stays and free_epoch_name(facts, recipe) == recipe.epoch else None
    epoch_seen = False
    seen: set[ast.FunctionDef] = set(lifted)
    for chunk in chunks:
        for n in _names(chunk):
            f = local_function(facts, n)
            if f is not None and recipe.epoch_loop not in facts.scopes.ancestors(f):
                epoch_seen |= shown in _check(facts, binder, f, n, changed - {shown}, variables, seen)
    by_others = seen_by_others(facts, binder, changed | recipe.shared, variables, seen)
    for name, why in by_others.items():
        if name != shown:
            raise why
    return epoch_seen or shown in by_others


def _names(chunk: Chunk) -> Iterator[ast.Name]:
    for s in chunk.statements:
        yield from walk(s, ast.Name)


def _of_loop(chunk: Chunk) -> list[ast.Name]:
    """The names that the loop over batches itself binds: the parts of a batch, and its number."""
    return batch_names(chunk.passing) if chunk.passing is not None and chunk.hook.endswith("_step") else []


def _check(
    facts: Facts,
    binder: Binder,
    f: ast.FunctionDef,
    at: ast.Name,
    changed: set[str],
    variables: Variables,
    seen: set[ast.FunctionDef],
) -> set[str]:
    """The names of the trunk that the function reads, and those that it calls."""
    read: set[str] = set()
    if f in seen:
        return read
    seen.add(f)
    for n in walk(f, ast.Name):
        if n in facts.scopes.hidden:
            continue  # a comprehension's own name is not the trunk's
        if facts.scopes.scope_of(n).lookup(n.id) is binder.trunk_scope:
            read |= {n.id} if isinstance(n.ctx, ast.Load) else set()
            if isinstance(n.ctx, ast.Load) and n.id in changed:
                raise _shared(at, f"{f.name}() reads `{n.id}`, which the loop changes", n.id)
            if not isinstance(n.ctx, ast.Load) and Variable("", n.id) in variables.attributes:
                raise _shared(at, f"{f.name}() changes `{n.id}`, which the loop reads", n.id)
        inner = local_function(facts, n)
        if inner is not None:
            read |= _check(facts, binder, inner, at, changed, variables, seen)
    return read


def _shared(at: ast.Name, reason: str, name: str) -> CannotLift:
    found = CannotLift(at, reason)
    found.shared = name
    return found

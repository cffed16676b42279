"""Names that a loop at the script's own level counts with and functions that stay read: they stay globals.

`batches_done = epoch * len(loader) + i` of a step, which `save_sample()` names its file by.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.script import Facts
from .chunks import Binder, Chunk, chunks_of
from .recipe import Recipe
from .same_numbers import Store, given_by, is_number, same_numbers


def may_stay_global(facts: Facts, recipe: Recipe, name: str) -> bool:
    """Whether methods may write a name as the global that it is: a number that is every rank's, however batches are
    divided. In a step it is computed of numbers of steps and epochs; once an epoch, of numbers that are whole by then.
    """
    binder, train = Binder(facts, recipe), recipe.train
    if binder.trunk_scope is not facts.scopes.module or recipe.reloads or not _is_number_of_loop(recipe, binder, name):
        return False
    for chunk in chunks_of(facts, recipe):
        for s in _stores(facts, binder, chunk, name):
            if chunk.passing is not train and chunk.hook.endswith("_step"):
                return False  # an evaluation gives each rank batches of its own
            if chunk.hook == "training_step" and name not in same_numbers(facts, train):
                return False
            if s is None or not is_number(facts, s.value):
                return False
    return all(_is_constant(facts, recipe, n) for n in facts.scopes.module.stores.get(name, ()))


def _is_number_of_loop(recipe: Recipe, binder: Binder, name: str) -> bool:
    """Not an optimizer, a part of a batch, or what a pass has by another name."""
    made = {*recipe.optimization.optimizers, *(n for n, _ in recipe.schedulers), recipe.epoch}
    for p in (recipe.train, recipe.evaluate):
        if p is not None:
            made |= {n.id for n in walk(p.target, ast.Name)} | {n.id for n in walk(p.loader, ast.Name)}
        if p is not None and p.call is not None:
            made |= {n.id for a in (*p.call.args, *(k.value for k in p.call.keywords)) for n in walk(a, ast.Name)}
        if p is not None and p.result is not None:
            made |= {n.id for n in walk(p.result, ast.Name)}
    e = recipe.evaluate
    return name not in made and (e is None or name != e.index)


def _stores(facts: Facts, binder: Binder, chunk: Chunk, name: str) -> Iterator[Store | None]:
    """The statements of a chunk that give the name a value; None for one that gives it by the way."""
    for n in (n for s in chunk.statements for n in walk(s, ast.Name)):
        if n.id != name or isinstance(n.ctx, ast.Load) or n in facts.scopes.hidden:
            continue
        if facts.scopes.scope_of(n).lookup(name) is binder.trunk_scope:
            yield given_by(facts, n)


def _is_constant(facts: Facts, recipe: Recipe, n: ast.AST) -> bool:
    """Whether what gives the name a value elsewhere is no matter: a number that it begins with or has after the loop,
    a constant that a function which stays gives it or adds.
    """
    scopes, s = facts.scopes, facts.scopes.statement_of(n)
    lifted = [recipe.epoch_loop, *(p.function for p in (recipe.train, recipe.evaluate) if p is not None)]
    if isinstance(n, ast.Name) and any(up in lifted for up in scopes.ancestors(n)):
        return True
    if not isinstance(n, ast.Name) or not isinstance(s, (ast.Assign, ast.AugAssign)):
        return False
    values = s.value.elts if isinstance(s.value, ast.Tuple) else [s.value]
    of_trunk = scopes.of_name[n] is scopes.module
    return all(is_number(facts, v) if of_trunk else isinstance(v, ast.Constant) for v in values)

"""What an epoch begins with where it makes its loader anew: `train_dataloader` runs before there is an optimizer.

`scheduler.step()` above the batch loop waits for `on_train_epoch_start`, which comes after the loader is made.
"""

from __future__ import annotations

import ast
import builtins

from ..facts.arguments import argument
from ..facts.nodes import walk
from ..facts.script import Facts
from .nodes import names_of
from .recipe import CannotLift, DataPass, Recipe

STEPS = ("step", "zero_grad", "param_groups", "state_dict", "load_state_dict", "get_last_lr", "get_lr")


def apart(facts: Facts, recipe: Recipe) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statements above the batch loop that are about steps, of the epoch loop and of the pass's function; and
    those that read what such a statement gives.

    Raise CannotLift where one of them and what stays before it or after it would see other values in that order.
    """
    before, train = recipe.before, recipe.train
    given = _given(train)
    blocks = (before, train.before)
    steady = {n.id for s in (*before, *train.before) for n in names_of(s) if _is_steady(facts, n)} | {recipe.epoch}
    waits = _with_readers(blocks, [_waiting(b, recipe.optimization.optimizers) for b in blocks], given, steady)
    asked = {name for n in walk(train.loader, ast.Name) for name in given.get(n.id, {n.id})}
    for block, late in zip(blocks, waits, strict=True):
        own = {} if block is before else given
        for s in late:
            after = [o for o in block[block.index(s) + 1 :] if o not in late]
            changed = {name for o in after for name in _names(o, own, stores=True)}
            if _names(s, own, stores=True) & asked or _names(s, own) & changed:
                raise CannotLift(s, "it comes before the loader of the epoch is made, and the loader depends on it")
    return waits[0], waits[1]


def _given(train: DataPass) -> dict[str, set[str]]:
    """What the epoch loop calls the parameters of the pass's function."""
    found = {}
    if train.function is not None and train.call is not None:
        for p in (*train.function.args.posonlyargs, *train.function.args.args, *train.function.args.kwonlyargs):
            value = argument(train.call, train.function, p.arg)
            found[p.arg] = {n.id for n in walk(value, ast.Name)} if value is not None else {p.arg}
    return found


def _names(s: ast.stmt, given: dict[str, set[str]], stores: bool = False) -> set[str]:
    """The names of a statement, as the epoch loop has them; only those that it binds."""
    names = (n for n in names_of(s) if not (stores and isinstance(n.ctx, ast.Load)))
    return {name for n in names for name in given.get(n.id, {n.id})}


def _is_steady(facts: Facts, n: ast.Name) -> bool:
    """A name of an import or a builtin: nothing here gives it another value."""
    return facts.names.resolve(n) is not None or (
        hasattr(builtins, n.id) and facts.scopes.scope_of(n).lookup(n.id) is None
    )


def _with_readers(
    blocks: tuple[list[ast.stmt], ...], waits: list[list[ast.stmt]], given: dict[str, set[str]], steady: set[str]
) -> list[list[ast.stmt]]:
    """What waits, and what comes after it and reads a value of it; that may change what it works with, so that what
    is about the same things waits, too.
    """
    written: set[str] = set()
    found = []
    for block, waiting, own in zip(blocks, waits, ({}, given), strict=True):
        late = []
        for s in block:
            if s in waiting or _names(s, own) & written:
                late.append(s)
                written |= _names(s, own, stores=s in waiting) - steady
        found.append(late)
    return found


def _waiting(block: list[ast.stmt], optimizers: list[str]) -> list[ast.stmt]:
    """What is about steps, and what is printed after it."""
    found: list[ast.stmt] = []
    for s in block:
        prints = isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and ast.unparse(s.value.func) == "print"
        if _about_steps(s, optimizers) or (found and prints):
            found.append(s)
    return found


def _about_steps(s: ast.stmt, optimizers: list[str]) -> bool:
    """Whether a statement works with an optimizer or a schedule."""
    return any(n.id in optimizers for n in names_of(s)) or any(
        n.attr in STEPS and isinstance(n.value, ast.Name) for n in walk(s, ast.Attribute)
    )

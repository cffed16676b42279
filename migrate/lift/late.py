"""What an epoch begins with where it makes its loader anew: `train_dataloader` runs before there is an optimizer.

`scheduler.step()` above the batch loop waits for `on_train_epoch_start`, which comes after the loader is made.
"""

from __future__ import annotations

import ast
import builtins

from ..facts.arguments import argument
from ..facts.nodes import walk
from ..facts.script import Facts
from .nodes import local_function, names_of
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
    first = _waiting(before, recipe.optimization.optimizers)
    waiting = [first, _waiting(train.before, recipe.optimization.optimizers, bool(first))]
    beside = {place for block in waiting for s in block for place in _set_by_calls(facts, s)}
    waits = _with_readers(blocks, waiting, given, steady, beside)
    if _reads(train.loader, given, beside):
        raise CannotLift(train.loop, f"{', '.join(sorted(beside))} is set in the epoch, and the loader is made by it")
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
    blocks: tuple[list[ast.stmt], ...],
    waits: list[list[ast.stmt]],
    given: dict[str, set[str]],
    steady: set[str],
    beside: set[str],
) -> list[list[ast.stmt]]:
    """What waits, and what comes after it and reads a value of it; that may change what it works with, so that what
    is about the same things waits, too. `beside`: what functions set that are called in what waits.
    """
    written: set[str] = set()
    found: list[list[ast.stmt]] = []
    for block, waiting, own in zip(blocks, waits, ({}, given), strict=True):
        late: list[ast.stmt] = []
        for s in block:
            after = bool(late or any(found))
            if s in waiting or _names(s, own) & written or (after and _reads(s, own, beside)):
                late.append(s)
                written |= _names(s, own, stores=s in waiting) - steady
        found.append(late)
    return found


def _set_by_calls(facts: Facts, s: ast.stmt) -> set[str]:
    """What the functions of this file set that a statement calls: `args.lr`, a name of the script."""
    found = set[str]()
    for call in walk(s, ast.Call):
        f = local_function(facts, call.func) if isinstance(call.func, ast.Name) else None
        if f is None:
            continue
        own = facts.scopes.by_node[f].params
        for a in walk(f, ast.Attribute):
            if isinstance(a.ctx, ast.Store) and isinstance(a.value, ast.Name):
                value = argument(call, f, a.value.id) if a.value.id in own else a.value
                found |= {f"{value.id}.{a.attr}"} if isinstance(value, ast.Name) else set()
        for n in walk(f, ast.Name):
            if isinstance(n.ctx, ast.Store) and facts.scopes.scope_of(n).lookup(n.id) is facts.scopes.module:
                found.add(n.id)
    return found


def _reads(node: ast.AST, given: dict[str, set[str]], places: set[str]) -> bool:
    """Whether a node reads one of such places, by the names that the epoch loop has."""
    for n in walk(node) if places else ():
        root = n.value if isinstance(n, ast.Attribute) else n
        for name in given.get(root.id, {root.id}) if isinstance(root, ast.Name) else ():
            if (f"{name}.{n.attr}" if isinstance(n, ast.Attribute) else name) in places:
                return True
    return False


def _waiting(block: list[ast.stmt], optimizers: list[str], after: bool = False) -> list[ast.stmt]:
    """What is about steps, and what is printed after it; `after`: after what waits above."""
    found: list[ast.stmt] = []
    for s in block:
        prints = isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and ast.unparse(s.value.func) == "print"
        if _about_steps(s, optimizers) or ((found or after) and prints):
            found.append(s)
    return found


def _about_steps(s: ast.stmt, optimizers: list[str]) -> bool:
    """Whether a statement works with an optimizer or a schedule."""
    return any(n.id in optimizers for n in names_of(s)) or any(
        n.attr in STEPS and isinstance(n.value, ast.Name) for n in walk(s, ast.Attribute)
    )

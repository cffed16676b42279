"""What an epoch begins with where it makes its loader anew: `train_dataloader` runs before there is an optimizer.

`scheduler.step()` above the batch loop waits for `on_train_epoch_start`, which comes after the loader is made.
"""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from .nodes import names_of
from .recipe import CannotLift, DataPass

STEPS = ("step", "zero_grad", "param_groups", "state_dict", "load_state_dict", "get_last_lr", "get_lr")


def apart(before: list[ast.stmt], train: DataPass, optimizers: list[str]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statements above the batch loop that are about steps, of the epoch loop and of the pass's function.

    Raise CannotLift where one of them and what stays before it or after it would see other values in that order.
    """
    waits = [_waiting(block, optimizers) for block in (before, train.before)]
    for block, late in zip((before, train.before), waits, strict=True):
        for s in late:
            after = [o for o in block[block.index(s) + 1 :] if o not in late]
            rest = [*after, *(train.before if block is before else [])]
            written = {n.id for n in names_of(s) if not isinstance(n.ctx, ast.Load)}
            read = {n.id for n in names_of(s)}
            touched = {n.id for o in rest if o not in waits[1] for n in names_of(o)}
            changed = {n.id for o in after for n in names_of(o) if not isinstance(n.ctx, ast.Load)}
            asked = {n.id for n in walk(train.loader) if isinstance(n, ast.Name)}
            if written & (touched | asked) or read & changed:
                raise CannotLift(s, "it comes before the loader of the epoch is made, and the loader depends on it")
    return waits[0], waits[1]


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
        isinstance(n, ast.Attribute) and n.attr in STEPS and isinstance(n.value, ast.Name) for n in walk(s)
    )

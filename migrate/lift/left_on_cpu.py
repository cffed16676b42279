"""Tensors of the script that a step or an evaluation meets on the CPU: as buffers they would be on the card.

    acc = (out.cpu().argmax(1) == y_test).float().mean()

They stay plain attributes: what else reads them moves what it takes, `X_test.cuda()`, as the script does. So does what
indexes a tensor that stays: `order[a:b]` for `x[order[a:b]].pin_memory().to(device)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..codemods._indexes import is_moved_after
from ..codemods.back_on_cpu import METHODS, brought, parts
from ..facts.on_cpu import is_on_cpu
from ..facts.plain import VARIABLE
from ..facts.script import Facts
from .chunks import Binder
from .recipe import Recipe

ARRAYS = ("numpy.", "matplotlib.", "sklearn.", "scipy.")
OF_CPU = ("numpy", "pin_memory")  # methods that only a tensor of the CPU has a use for, or has at all
DATA = "torch.utils.data."
DEPTH = 3  # of names for what indexes


def left_on_cpu(facts: Facts, binder: Binder, name: str) -> bool:
    """Whether a tensor that the script made on the CPU is met there, and by no batch."""
    if facts.without_devices:
        return False
    key = (left_on_cpu, binder.trunk_scope, name)
    if key not in facts.answers:
        facts.answers[key] = False  # while it is asked: order[order]
        facts.answers[key] = _is_left(facts, binder, name)
    return bool(facts.answers[key])


def handed_over(facts: Facts, recipe: Recipe, binder: Binder, name: str) -> bool:
    """Whether the loop gives a tensor of the CPU whole to what may meet it with others there: a data set, or a function
    of the script, which moves what it gives back.
    """
    if facts.without_devices:
        return False
    lifted = {p.function for p in (recipe.train, recipe.evaluate) if p is not None and p.function is not None}
    reads = [r for r in facts.scopes.reads(name, binder.trunk_scope) if _is_handed(facts, r)]
    return any(recipe.epoch_loop in ups or lifted & ups for r in reads if (ups := {*facts.scopes.ancestors(r)}))


def _is_handed(facts: Facts, read: ast.expr) -> bool:
    up = facts.scopes.parents.get(read)
    call = facts.scopes.parents.get(up) if isinstance(up, (ast.keyword, ast.Starred)) else up
    if not isinstance(call, ast.Call) or call.func is read or facts.loops.is_model_call(call):
        return False
    full = facts.names.resolve(call.func)
    if full is not None:
        return full.startswith(DATA) or not full.startswith("torch.")
    f = call.func
    return not isinstance(f, ast.Name) or facts.scopes.scope_of(f).lookup(f.id) is not None  # no builtin


def _is_left(facts: Facts, binder: Binder, name: str) -> bool:
    reads = list(facts.scopes.reads(name, binder.trunk_scope))
    if any(_indexes_there(facts, binder, r) for r in reads):
        return True
    met = [m for r in reads for m in _meets(facts, r)]
    return any(m is None or brought(facts, m) for m in met) and not any(
        m is not None and facts.placed.by_runtime(m) and not brought(facts, m) for m in met
    )


def _meets(facts: Facts, read: ast.expr) -> Iterator[ast.expr | None]:
    """What is compared or computed with a tensor, where it is not moved; None for what takes it there only."""
    node, up = read, facts.scopes.parents.get(read)
    while up is not None:
        if isinstance(up, ast.Attribute):
            if up.attr in OF_CPU:
                yield None
            if up.attr not in METHODS:
                return
        elif isinstance(up, ast.Subscript):
            if up.value is not node:
                return
            if isinstance(up.ctx, ast.Store):  # memory[i] = loss.cpu()
                s = facts.scopes.parents.get(up)
                yield from (s.value,) if isinstance(s, (ast.Assign, ast.AugAssign)) else ()
                return
        elif isinstance(up, ast.Call):
            full = facts.names.resolve(up.func) or ""
            if full.startswith(ARRAYS):
                yield None
            if up.func is not node and full == "" and is_on_cpu(facts, up.func):
                yield None
            if up.func is not node and full != VARIABLE:
                yield from (p for p in parts(up) if p is not node)
                return
        elif isinstance(up, (ast.Compare, ast.BinOp)):
            yield from (p for p in parts(up) if p is not node)
        elif not isinstance(up, (ast.UnaryOp, ast.Starred, ast.keyword)):
            return
        node, up = up, facts.scopes.parents.get(up)  # type: ignore[assignment]


def _indexes_there(facts: Facts, binder: Binder, read: ast.expr, depth: int = 0) -> bool:
    """Whether a part of the tensor indexes one of the CPU, by itself or by a name."""
    node, up = read, facts.scopes.parents.get(read)
    while isinstance(up, ast.Subscript) and up.value is node:
        node, up = up, facts.scopes.parents.get(up)
    if isinstance(up, ast.Subscript):
        return is_moved_after(facts, up) or (isinstance(up.value, ast.Name) and left_on_cpu(facts, binder, up.value.id))
    if not isinstance(up, ast.Assign) or len(up.targets) > 1 or depth > DEPTH:
        return False
    target = up.targets[0]
    home = facts.scopes.scope_of(target).lookup(target.id) if isinstance(target, ast.Name) else None
    reads = facts.scopes.reads(target.id, home) if isinstance(target, ast.Name) and home is not None else ()
    return any(_indexes_there(facts, binder, r, depth + 1) for r in reads)

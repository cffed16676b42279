"""Tensors of the script that a step or an evaluation meets on the CPU: as buffers they would be on the card.

    acc = (out.cpu().argmax(1) == y_test).float().mean()

They stay plain attributes: what else reads them moves what it takes, `X_test.cuda()`, as the script does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..codemods.back_on_cpu import METHODS, brought, parts
from ..facts.on_cpu import is_on_cpu
from ..facts.plain import VARIABLE
from ..facts.script import Facts
from .chunks import Binder

ARRAYS = ("numpy.", "matplotlib.", "sklearn.", "scipy.")


def left_on_cpu(facts: Facts, binder: Binder, name: str) -> bool:
    """Whether a tensor that the script made on the CPU is met there, and by no batch."""
    if facts.without_devices:
        return False
    met = [m for r in facts.scopes.reads(name, binder.trunk_scope) for m in _meets(facts, r)]
    return any(m is None or brought(facts, m) for m in met) and not any(
        m is not None and facts.placed.by_runtime(m) and not brought(facts, m) for m in met
    )


def _meets(facts: Facts, read: ast.expr) -> Iterator[ast.expr | None]:
    """What is compared or computed with a tensor, where it is not moved; None for what takes it there only."""
    node, up = read, facts.scopes.parents.get(read)
    while up is not None:
        if isinstance(up, ast.Attribute):
            if up.attr == "numpy":
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

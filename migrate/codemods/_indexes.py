"""Parts of batches that index what stays on the CPU: an array of numpy, a tensor that gets what was brought there.

memory[i] = loss.detach().cpu()
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..facts.arrays import on_host
from ..facts.script import Facts

Asks = Callable[[Facts, ast.expr], bool]


def indexes_there(facts: Facts, is_left: Asks, brought: Asks) -> Iterator[tuple[ast.expr, str]]:
    """Each such index, and what it is one of."""
    of_batches = [(s, left) for s in facts.walk(ast.Subscript) if (left := _left(facts, s, is_left))]
    there = {key for s, _ in of_batches if _gets(facts, s, brought) and (key := _key(facts, s.value)) is not None}
    for s, left in of_batches:
        if _key(facts, s.value) in there or on_host(facts, s.value):
            yield from ((index, facts.short(s.value)) for index in left)


def _left(facts: Facts, s: ast.Subscript, is_left: Asks) -> list[ast.expr]:
    parts = s.slice.elts if isinstance(s.slice, ast.Tuple) else [s.slice]
    parts = [p for p in parts if isinstance(p, ast.Name | ast.Attribute | ast.Subscript | ast.Call)]
    return [p for p in parts if is_left(facts, p)] if parts and facts.loops.hot(s) is not None else []


def _gets(facts: Facts, s: ast.Subscript, brought: Asks) -> bool:
    """`memory[i] = loss.cpu()`"""
    up = facts.scopes.parents.get(s)
    kept = isinstance(up, ast.Assign) and s in up.targets
    return (kept or (isinstance(up, ast.AugAssign) and up.target is s)) and brought(facts, up.value)  # type: ignore[union-attr]


def _key(facts: Facts, held: ast.expr) -> tuple[object, str] | None:
    """What tells `memory`, or `self.memory`, from others of that name."""
    if isinstance(held, ast.Name):
        return facts.scopes.scope_of(held).lookup(held.id), held.id
    return (None, ast.unparse(held)) if isinstance(held, ast.Attribute) else None

"""Sums in the elements of a tensor, a list or a dictionary of zeros: `ddp_loss[0] += loss.item()`.

What is added has to be shown to be a sum over samples, or the mean that the step differentiates; a tensor like that is
then brought together as a whole. What is not shown raises: the step gets its batches whole.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..facts.nodes import walk
from ..facts.script import Facts
from .chunks import Binder, Chunk, Variable, Variables
from .collected import filled_by
from .nodes import walk_here
from .recipe import CannotLift, Recipe
from .sums import Sums
from .zeros import is_zeros, zeroed


@dataclass(frozen=True)
class Fill:
    statement: ast.AugAssign | ast.Assign
    target: ast.Subscript
    name: ast.Name
    value: ast.expr


def fills_of(chunk: Chunk, binder: Binder, variables: Variables) -> dict[Variable, list[Fill]]:
    """The additions to elements of what lives longer than a step, by the variable that holds them."""
    found: dict[Variable, list[Fill]] = {}
    for s in chunk.statements:
        for n in walk_here(s):
            fill = _fill(n)
            var = binder.variable(fill.name) if fill is not None else None
            if fill is not None and isinstance(var, Variable) and var in variables.attributes:
                found.setdefault(var, []).append(fill)
    return found


def _fill(n: ast.AST) -> Fill | None:
    """`x[i] += e`, and `x[i] = x[i] + e`."""
    if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Subscript):
        target, value = n.target, n.value
    elif isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Subscript):
        target = n.targets[0]
        if not isinstance(n.value, ast.BinOp) or ast.unparse(n.value.left) != ast.unparse(target):
            return None
        value = n.value.right
    else:
        return None
    root: ast.expr = target
    while isinstance(root, ast.Subscript):
        root = root.value
    return Fill(n, target, root, value) if isinstance(root, ast.Name) else None


def weighed_fills(
    facts: Facts, recipe: Recipe, binder: Binder, chunks: list[Chunk], step: Chunk, fills: list[Fill], reduction: str
) -> frozenset[ast.AST] | None:
    """The values that are weighed by the share of their rank; None where every rank adds up the same.

    Raises CannotLift for what is not shown to be a sum.
    """
    passing = step.passing
    assert passing is not None
    sums = Sums(facts, recipe, passing, reduction)
    if not any(sums.of_the_samples(f.statement) for f in fills):
        return None
    weighed = set()
    for f in fills:
        op = f.statement.op if isinstance(f.statement, ast.AugAssign) else f.statement.value.op  # type: ignore[attr-defined]
        kind = sums.kind(f.value)
        if not isinstance(op, (ast.Add, ast.Sub)) or kind is None or not sums.everywhere(f.statement, f.target):
            raise CannotLift(f.statement, f"`{facts.short(f.statement)}` is not shown to be a sum over samples")
        if kind == "mean":
            weighed.add(f.value)
    _check_uses(facts, binder, chunks, step, fills)
    return frozenset(weighed)


def _check_uses(facts: Facts, binder: Binder, chunks: list[Chunk], step: Chunk, fills: list[Fill]) -> None:
    """Raise unless it is zeros when the batches begin, and nothing but these sums, and reads, comes to it."""
    passing, first = step.passing, fills[0]
    assert passing is not None
    var = binder.variable(first.name)
    name = first.name.id
    made = [s for s in passing.before if _mentions(binder, s, var)]
    if len(made) != 1 or not (_makes_zeros(facts, made[0]) or zeroed(facts, made[0]) is not None):
        raise CannotLift(first.statement, f"`{name}` is not shown to be zeros before the batches")
    for chunk in chunks:
        if any(chunk.statements is kept for kept in (passing.before, passing.body, passing.after)):
            continue
        if any(_mentions(binder, s, var) for s in chunk.statements):
            raise CannotLift(first.statement, f"`{name}` adds up what is read elsewhere too")
    own = {id(n) for f in fills for n in _mentions(binder, f.statement, var)}
    for s in step.statements:
        for n in _mentions(binder, s, var):
            up = facts.scopes.parents.get(n)
            element = isinstance(up, ast.Subscript) and isinstance(up.ctx, ast.Load) and not _is_filled(facts, n)
            if id(n) not in own and not element and not _printed(facts, n):
                raise CannotLift(n, f"`{name}` adds up what the step hands on")


def _makes_zeros(facts: Facts, s: ast.stmt) -> bool:
    if not isinstance(s, ast.Assign) or len(s.targets) != 1 or not isinstance(s.targets[0], ast.Name):
        return False
    return is_zeros(facts, s.value)


def _mentions(binder: Binder, s: ast.AST, var: object) -> list[ast.Name]:
    return [n for n in walk(s, ast.Name) if binder.variable(n) == var]


def _is_filled(facts: Facts, n: ast.Name) -> bool:
    """The x of `x["mae"].append(...)`: what is brought together is another one than what it goes into."""
    return any(filled_by(up) is n for up in facts.scopes.ancestors(n) if isinstance(up, ast.Call))


def _printed(facts: Facts, n: ast.Name) -> bool:
    up = facts.scopes.parents.get(n)
    while isinstance(up, (ast.FormattedValue, ast.JoinedStr)):
        up = facts.scopes.parents.get(up)
    return isinstance(up, ast.Call) and isinstance(up.func, ast.Name) and up.func.id == "print"

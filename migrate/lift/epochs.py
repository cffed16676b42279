"""Epoch numbers: the script counts its own way, the Trainer counts from 0."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.operands import FACTOR, TERM, closed
from ..facts.script import Facts
from ..facts.spelled import spelled
from .recipe import Recipe


def max_epochs(facts: Facts, recipe: Recipe) -> str:
    """How many epochs `range(first, last)` makes, written as simply as it can be; -1 for no end of their own."""
    first, last = recipe.first_epoch, recipe.last_epoch
    if last is None:
        return "-1"
    if isinstance(first, ast.BinOp) and isinstance(last, ast.BinOp) and _adds(first) == _adds(last) is not None:
        first, last = first.left, last.left
    text = facts.text.get(last)
    if first is None:
        return text
    numbers = [n.value for n in (first, last) if isinstance(n, ast.Constant) and isinstance(n.value, int)]
    if len(numbers) == 2:
        return str(max(numbers[1] - numbers[0], 0))
    if (rest := _beyond(first, last)) is not None:
        return facts.text.get(rest)
    left = f"({text})" if isinstance(last, ast.BinOp) else closed(text, TERM)
    count = f"{left} - {closed(facts.text.get(first), FACTOR)}"
    if facts.scopes.scope_of(first).lookup("max") is not None:
        return count
    return f"max({count}, 0)"  # a run that was resumed behind its last epoch trains nothing more


def _beyond(first: ast.expr, last: ast.expr) -> ast.expr | None:
    """The n of `range(first, first + n)`."""
    if not isinstance(last, ast.BinOp) or not isinstance(last.op, ast.Add):
        return None
    rest = [b for a, b in ((last.left, last.right), (last.right, last.left)) if spelled(a) == spelled(first)]
    return rest[0] if rest else None


def _adds(bound: ast.BinOp) -> int | None:
    """1 of `n + 1`."""
    added = isinstance(bound.op, ast.Add) and isinstance(bound.right, ast.Constant)
    return bound.right.value if added and type(bound.right.value) is int else None  # type: ignore[attr-defined]


def epoch_expression(first: str | None) -> str:
    """The script's epoch number in a method; `first` is the source of its first epoch there."""
    return "self.current_epoch" if first is None else f"self.current_epoch + {closed(first, FACTOR)}"


def epoch_afterwards(facts: Facts, recipe: Recipe) -> str:
    """The script's epoch number after the loop, when its last epoch is over."""
    first = recipe.first_epoch
    if first is None:
        return "trainer.current_epoch - 1"
    if isinstance(first, ast.Constant) and first.value == 1:
        return "trainer.current_epoch"
    return f"trainer.current_epoch - 1 + {closed(facts.text.get(first), FACTOR)}"


def free_epoch_name(facts: Facts, recipe: Recipe) -> str:
    """What a method calls the epoch: as the script does, unless a pass has another thing by that name."""
    name, taken = recipe.epoch, set[str]()
    for p in (recipe.train, recipe.evaluate):
        if p is None or p.function is None or p.call is None:
            continue
        given = {k.arg for k in p.call.keywords if _is_name(k.value, name)}
        given |= {a.arg for a, v in zip(p.function.args.args, p.call.args, strict=False) if _is_name(v, name)}
        scope = facts.scopes.by_node[p.function]
        taken |= ({*scope.stores, *scope.params} | {n.id for n in walk(p.function, ast.Name)}) - given
    if name in taken and not _is_read(facts, recipe, name):
        name = "epoch"
    while name in taken and not _is_read(facts, recipe, name):
        name += "_"
    return name


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_read(facts: Facts, recipe: Recipe, name: str) -> bool:
    """Whether passes only read the name, as what the loop around them counts with: a global, or of the function."""
    passes = [p.function for p in (recipe.train, recipe.evaluate) if p is not None and p.function is not None]
    scopes = [facts.scopes.by_node[f] for f in passes]
    own = facts.scopes.scope_of(recipe.epoch_loop)
    return not any(name in s.stores or name in s.params or s.lookup(name) not in (own, None) for s in scopes)

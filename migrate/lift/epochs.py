"""Epoch numbers: the script counts its own way, the Trainer counts from 0."""

from __future__ import annotations

import ast

from ..facts.script import Facts
from .recipe import Recipe


def max_epochs(facts: Facts, recipe: Recipe) -> str:
    """How many epochs `range(first, last)` makes, written as simply as it can be; -1 for no end of their own."""
    first, last = recipe.first_epoch, recipe.last_epoch
    if last is None:
        return "-1"
    text = facts.text.get(last)
    if first is None:
        return text
    if isinstance(first, ast.Constant) and isinstance(first.value, int):
        if isinstance(last, ast.Constant) and isinstance(last.value, int):
            return str(last.value - first.value)
        if isinstance(last, ast.BinOp) and isinstance(last.op, ast.Add) and isinstance(last.right, ast.Constant):
            rest = last.right.value - first.value if isinstance(last.right.value, int) else None
            if rest == 0:
                return facts.text.get(last.left)
    left = f"({text})" if isinstance(last, ast.BinOp | ast.IfExp) else text
    right = facts.text.get(first)
    return f"{left} - {right}" if isinstance(first, ast.Name | ast.Constant | ast.Attribute) else f"{left} - ({right})"


def epoch_expression(first: str | None) -> str:
    """The script's epoch number in a method; `first` is the source of its first epoch there."""
    return "self.current_epoch" if first is None else f"self.current_epoch + {first}"


def epoch_afterwards(facts: Facts, recipe: Recipe) -> str:
    """The script's epoch number after the loop, when its last epoch is over."""
    first = recipe.first_epoch
    if first is None:
        return "trainer.current_epoch - 1"
    if isinstance(first, ast.Constant) and first.value == 1:
        return "trainer.current_epoch"
    return f"trainer.current_epoch - 1 + {facts.text.get(first)}"

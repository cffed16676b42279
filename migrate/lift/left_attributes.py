"""Attributes that a step gives a value of its samples, and that are read when the batches are over: told of.

`self.last = loss.item()` of a class whose loop is lifted: each process has there what its share of the batch gave.
"""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from .collected import depends, gone_through, of_samples
from .nodes import walk_here
from .recipe import Recipe

SIZES = ("shape", "device", "dtype", "size", "dim", "numel")


def left_in_attributes(facts: Facts, recipe: Recipe, shown: set[ast.AST]) -> dict[str, ast.AST]:
    """The attributes and the statements that give them values. `shown`: what is brought together where it is put in."""
    train = recipe.train
    own = of_samples(facts, train, train.body)
    within = own | gone_through(train.body, own)
    found: dict[str, ast.AST] = {}
    for n in (n for s in train.body for n in walk_here(s) if isinstance(n, ast.Assign)):
        given = [t for whole in n.targets for t in walk(whole, ast.Attribute) if isinstance(t.ctx, ast.Store)]
        for a in given:
            if (
                facts.classes.is_self(a.value)
                and depends(n.value, within, shown)
                and _read_beyond(facts, train.loop, a)
            ):
                found.setdefault(ast.unparse(a), n)
    return found


def _read_beyond(facts: Facts, loop: ast.AST, given: ast.Attribute) -> bool:
    """Whether an attribute of the object's own is read outside of the loop, and not only asked for its size."""
    for a in facts.attributes.get(given.attr, ()):
        up = facts.scopes.parents.get(a)
        size = isinstance(up, ast.Attribute) and up.attr in SIZES
        own = isinstance(a.ctx, ast.Load) and facts.classes.is_self(a.value) and not size
        if own and loop not in facts.scopes.ancestors(a):
            return True
    return False

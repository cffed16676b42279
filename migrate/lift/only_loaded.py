"""Tensors of the script that the lifted loop makes its loader of, and reads for nothing else.

    for x, y in build(X, Y, 8):

They stay where they were made: the Trainer moves the batches. As buffers a data set would meet them on the card.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..facts.nodes import walk
from .chunks import Binder, Chunk, Variable
from .nodes import names_of
from .reads import names_in
from .recipe import Recipe


def only_loaded(binder: Binder, recipe: Recipe, chunks: Iterable[Chunk], name: str) -> bool:
    """Whether a name of the trunk is read for the loader of an epoch alone, which is made anew for each."""
    if not recipe.reloads:
        return False
    loading = {n for part in _loading(binder, recipe, chunks) for n in names_of(part)}
    read = {n for chunk in chunks for n in names_in(chunk.statements)} | loading
    here = {n for n in read if binder.variable(n) == Variable("", name)}
    return bool(here) and here <= loading


def _loading(binder: Binder, recipe: Recipe, chunks: Iterable[Chunk]) -> Iterator[ast.AST]:
    """What stands for the loader, and the statements above it."""
    loader = recipe.train.loader
    whole = binder.variable(loader) if isinstance(loader, ast.Name) else None
    yield whole if isinstance(whole, ast.expr) else loader
    yield from (s for chunk in chunks if chunk.hook == "train_dataloader" for s in chunk.statements)


def is_made_on_cpu(value: ast.expr) -> bool:
    """Whether what makes a tensor names no device."""
    return not any(k.arg in ("device", None) for c in walk(value, ast.Call) for k in c.keywords)

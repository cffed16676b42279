"""A function that is defined above the batch loop and called in it: the step, another method, does not see it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..facts.nodes import walk
from ..facts.script import Facts
from .chunks import Chunk
from .recipe import CannotLift

KINDS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def check_made(facts: Facts, chunks: Sequence[Chunk]) -> None:
    """Raise CannotLift where a method would read what only another defines."""
    made: dict[ast.AST, str] = {}
    for chunk in chunks:
        made |= {d: chunk.hook for s in chunk.statements for kind in KINDS for d in walk(s, kind)}
    for chunk in chunks if made else ():
        for n in (n for s in chunk.statements for n in walk(s, ast.Name)):
            home = facts.scopes.scope_of(n).lookup(n.id)
            given = home.stores.get(n.id, []) if home is not None else []
            hooks = {made.get(d) for d in given}
            if given and None not in hooks and chunk.hook not in hooks:
                raise CannotLift(given[0], f"{n.id}() is defined outside of the loop over batches that calls it")

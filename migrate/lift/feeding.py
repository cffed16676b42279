"""What the step's loss is computed of, from whatever the script had before: its networks, its weights, a memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.spelled import spelled
from .nodes import local_function, walk_here
from .recipe import Recipe


def feeding(facts: Facts, recipe: Recipe) -> set[str]:
    """Names and attributes, as `counts` and `self.counts`, that what is differentiated is computed of, in any step."""
    found = {text for e in recipe.optimization.differentiated for text in _read(facts, e)}
    size = -1
    while size != len(found):
        size = len(found)
        for n in (n for s in recipe.train.body for n in walk_here(s)):
            if isinstance(n, (ast.Assign, ast.AugAssign, ast.NamedExpr, ast.For)):
                targets = n.targets if isinstance(n, ast.Assign) else [n.target]
                if any(text in found for t in targets for text in _read(facts, t)):
                    found.update(_read(facts, n.iter if isinstance(n, ast.For) else n.value))
    return found


def _is_filled(facts: Facts, n: ast.Name) -> bool:
    """A closure's `values.append(loss.item())` reads nothing of what is there."""
    up = facts.scopes.parents.get(n)
    return isinstance(up, ast.Attribute) and up.attr in ("append", "extend", "add", "update")


def _read(facts: Facts, e: ast.AST) -> Iterator[str]:
    """What an expression reads, itself or in the functions of this file that it names."""
    ahead, seen = [e], set[ast.AST]()
    for node in ahead:  # which grows meanwhile
        for n in walk(node):
            if isinstance(n, ast.Attribute):
                yield spelled(n)
            elif isinstance(n, ast.Name):
                of_module = facts.scopes.scope_of(n).lookup(n.id) is facts.scopes.module
                if node is e or (of_module and not _is_filled(facts, n)):
                    yield n.id
                f = local_function(facts, n)
                if f is not None and f not in seen:
                    seen.add(f)
                    ahead.append(f)

"""What a block within a step gives a name above where it reads it: `if i % 9 == 0: l = loss.item(); print(l)`."""

from __future__ import annotations

import ast
from collections.abc import Container

from ..facts.nodes import walk
from ..facts.script import Facts
from .nodes import pairs
from .reads import stored


def given_beside(facts: Facts, step: Container[ast.AST], name: ast.Name) -> ast.stmt | None:
    """The last statement that gives a name a value above its read, within the blocks around it but the step's own."""
    child: ast.AST = name
    for up in facts.scopes.ancestors(name) if name in facts.scopes.parents else ():
        if isinstance(child, ast.stmt):
            if _gives_around(child, name.id):
                return child
            if child in step:
                return None
            if isinstance(up, (ast.If, ast.With)):
                block = up.body if child in up.body else up.orelse if isinstance(up, ast.If) else []
                above = [s for s in block[: block.index(child)] if name.id in stored([s])]
                if above:
                    return above[-1]
        child = up
    return None


def ifs_around(facts: Facts, name: ast.Name) -> list[ast.If]:
    """What these give the name below its read is not there yet, nor is what another branch gives."""
    ups = facts.scopes.ancestors(name) if name in facts.scopes.parents else ()
    return [up for up in ups if isinstance(up, ast.If)]


def value_for(s: ast.stmt, name: str) -> ast.expr | None:
    """What `l = loss.item()` gives, or `l, n = loss.item(), len(x)`; None where another statement gives it."""
    if not isinstance(s, ast.Assign) or len(s.targets) > 1:
        return None
    given = [v for t, v in pairs(s) if isinstance(t, ast.Name) and t.id == name]
    starred = any(isinstance(e, ast.Starred) for pair in pairs(s) for e in pair)
    return given[-1] if given and not starred else None


def _gives_around(around: ast.stmt, name: str) -> bool:
    """Whether a statement around a read may give its name a value: a loop does anywhere in it, a block at its head."""
    if isinstance(around, (ast.If, ast.With)):
        head = [around.test] if isinstance(around, ast.If) else around.items
        return any(n.id == name and not isinstance(n.ctx, ast.Load) for h in head for n in walk(h, ast.Name))
    return hasattr(around, "body") and name in stored([around])

"""The names that a `match` binds: its patterns hold them as texts, where other bindings are names."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts

CAPTURES = (ast.MatchAs, ast.MatchStar, ast.MatchMapping)
OF_PARTS = (ast.MatchMapping, ast.MatchSequence)


def capturing(node: ast.AST) -> list[ast.AST]:
    """The patterns below a node that give a name a value."""
    return [n for m in walk(node, ast.Match) for n in walk(m) if isinstance(n, CAPTURES) and _name(n)]


def matched(facts: Facts, store: ast.AST) -> ast.expr | None:
    """What the pattern that binds a name is matched with: the name is that, or a part of it."""
    if not isinstance(store, CAPTURES):
        return None
    return next((up.subject for up in facts.scopes.ancestors(store) if isinstance(up, ast.Match)), None)


def takes_apart(m: ast.Match) -> bool:
    """Whether a case is for a dictionary or a sequence."""
    return any(isinstance(n, OF_PARTS) for case in m.cases for n in walk(case.pattern))


def _name(n: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> str | None:
    return n.rest if isinstance(n, ast.MatchMapping) else n.name

"""`except UnboundLocalError:` where a step tries a name before it has a value: what it lacks then is an attribute."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..facts.nodes import walk
from ..facts.script import Facts

UNBOUND = ("UnboundLocalError", "NameError")
CAUGHT_BY = ("AttributeError", "Exception", "BaseException")


def caught_too(
    facts: Facts, handler: ast.ExceptHandler, is_kept: Callable[[ast.Name], bool]
) -> dict[tuple[int, int], str]:
    """The edit that makes a handler catch what it caught of names that the module keeps."""
    attempt = facts.scopes.parents.get(handler)
    named = {n.id: n for n in walk(handler.type, ast.Name)} if handler.type is not None else {}
    if not isinstance(attempt, ast.Try) or named.keys().isdisjoint(UNBOUND) or not named.keys().isdisjoint(CAUGHT_BY):
        return {}
    if not any(is_kept(n) for s in attempt.body for n in walk(s, ast.Name)):
        return {}
    last = next(named[name] for name in UNBOUND if name in named)
    alone = last is handler.type
    start, stop = facts.text.span(last)
    return {(start, stop): f"({last.id}, AttributeError)" if alone else f"{last.id}, AttributeError"}

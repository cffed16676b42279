"""Names without a value as an epoch begins: as an attribute a step that tries one finds what the last epoch left there.

`try: x = next(it)` / `except NameError: it = iter(loader); x = next(it)`, in a function that is called once an epoch.
"""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from .reads import exposed, stored
from .recipe import CannotLift, DataPass

CATCHES = {"NameError", "UnboundLocalError", "Exception", "BaseException"}


def check_unset(facts: Facts, train: DataPass) -> None:
    """Raise for a name that a step tries before any has set it."""
    if train.function is None:
        return
    scope = facts.scopes.by_node[train.function]
    given = stored(train.before) | {n.id for n in walk(train.target, ast.Name)} | {train.index or ""}
    own = {name for name in scope.stores if name not in scope.params and name not in scope.globals}
    unset = ((exposed(train.body) & stored(train.body)) & own) - given
    for tried in (t for s in train.body for t in walk(s, ast.Try) if _catches_unset(t)):
        for n in (n for s in tried.body for n in walk(s)):
            if isinstance(n, ast.Name) and n.id in unset and isinstance(n.ctx, ast.Load):
                raise CannotLift(n, f"`{n.id}` has no value as an epoch begins, which is tried here")


def _catches_unset(tried: ast.Try) -> bool:
    kinds = [k for h in tried.handlers for k in (h.type.elts if isinstance(h.type, ast.Tuple) else [h.type])]
    return any(k is None or (isinstance(k, ast.Name) and k.id in CATCHES) for k in kinds)

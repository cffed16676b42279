"""What a module of a project runs only where it is started itself: below its main guard, and in functions for that."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .nodes import is_main_guard
from .script import once_a_file

if TYPE_CHECKING:
    from .script import Facts


@once_a_file
def own_main(facts: Facts) -> frozenset[ast.AST]:
    """The guards of a module that others import and no Trainer runs, and the functions that they alone call."""
    found: set[ast.AST] = {s for s in facts.tree.body if isinstance(s, ast.If) and is_main_guard(s.test)}
    if not (found and facts.imported) or facts.classes.run_by_trainer:
        return frozenset()
    more = True
    while more:
        more = False
        for f in facts.tree.body:
            if isinstance(f, ast.FunctionDef) and f not in found and _is_only_for(facts, f, found):
                found.add(f)
                more = True
    return frozenset(found)


def _is_only_for(facts: Facts, f: ast.FunctionDef, known: set[ast.AST]) -> bool:
    if facts.taken is None or facts.taken(f.name):
        return False
    uses = facts.devices.uses_of_function(f)
    return bool(uses) and all(not known.isdisjoint(facts.scopes.ancestors(u)) for u in uses)


def is_of_own_main(facts: Facts, node: ast.AST) -> bool:
    own = own_main(facts)
    return bool(own) and (node in own or not own.isdisjoint(facts.scopes.ancestors(node)))

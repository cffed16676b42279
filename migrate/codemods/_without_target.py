"""An assignment that nothing reads any more: it goes, and what its value does besides stays as a statement."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

from ..facts.nodes import walk
from ..facts.script import Facts
from .base import Change, Codemod


def without_target(codemod: Codemod, facts: Facts, s: ast.Assign, gone: Collection[ast.AST] = ()) -> Change:
    """`device = setup(seed)` to `setup(seed)`, which seeds; `gone`: what goes of the functions that it calls."""
    if not facts.devices.effects.has(s.value, gone):
        says = f"`{facts.short(s)}` removed: nothing reads it any more"
        return Change(s, codemod.edit(facts, s, says), None, (s,))
    says = f"`{facts.short(s)}` became `{facts.short(s.value)}`: nothing reads what it gives, and it does more"
    return Change(s, codemod.edit(facts, s, says), _value_alone, (s,), reads=tuple(walk(s.value)))


def _value_alone(original: Any, updated: Any) -> Any:
    import libcst as cst

    return cst.Expr(updated.value, semicolon=updated.semicolon)

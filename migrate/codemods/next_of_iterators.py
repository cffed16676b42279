"""T11: `next(batches)` for `batches.next()`, which the iterators of torch's loaders have no more since torch 1.13.

What is not seen to come from `iter()` keeps its method, and is told of where its name is that of an iterator.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.old_draws import is_draw, old_draws
from ..facts.script import Facts
from ..report import Note
from .base import Change, Codemod


class NextOfIterators(Codemod):
    code = "PTM610"
    name = "next-of-iterators"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        drawn = {*old_draws(facts.names.nodes)}
        defines = any(f.name == "next" for f in facts.names.nodes.functions)
        for call in facts.calls_of("next"):
            if call in drawn and self._can(facts, call):
                says = (
                    f"`{facts.short(call)}` became `next(...)`: iterators of torch's loaders have no such method today"
                )
                yield Change(call, self.edit(facts, call, says), _by_function, (call.func,), reads=(call.func.value,))  # type: ignore[attr-defined]
            elif call in drawn or (is_draw(call) and not defines and _sounds_like_one(call.func.value)):  # type: ignore[attr-defined]
                line, column, _, _ = facts.text.key(call)
                says = (
                    f"`{facts.short(call)}`: iterators of torch's loaders have no such method today: write `next(...)`"
                )
                self.left.append(Note(line, column + 1, self.code, says))

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _can(self, facts: Facts, call: ast.Call) -> bool:
        """Where `next` is Python's, and all lines stay where they are."""
        own = facts.scopes.scope_of(call).lookup("next") is not None
        of = call.func.value  # type: ignore[attr-defined]
        return not own and not facts.is_fixed(call) and of.end_lineno == call.end_lineno


def _sounds_like_one(of: ast.expr) -> bool:
    last = of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")
    return last.lower().endswith(("iter", "iterator"))


def _by_function(original: Any, updated: Any) -> Any:
    import libcst as cst

    return updated.with_changes(func=cst.Name("next"), args=[cst.Arg(updated.func.value)])

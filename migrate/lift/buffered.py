"""Tensors that a script makes on a device by name, and that the Module takes along as its buffers."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..codemods.place_like_inputs import PlaceLikeInputs
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..report import Note


def without_buffers(notes: list[Note], facts: Facts, lifted: str) -> list[Note]:
    """The notes but for those of a tensor that has one name, by which the lifted text registers it."""
    named = [n for n in notes if n.code == PlaceLikeInputs.code and "names a device" in n.message]
    gone = {n for n in named if any(_registers(lifted, name) for name in _names_at(facts, n.line))}
    return [n for n in notes if n not in gone]


def _names_at(facts: Facts, line: int) -> Iterable[str]:
    """What a statement of a line gives a tensor, where that is all that the name is given."""
    for s in facts.walk(ast.Assign):
        target = s.targets[0]
        if s.lineno <= line <= (s.end_lineno or s.lineno) and len(s.targets) == 1 and isinstance(target, ast.Name):
            home: Scope | None = facts.scopes.scope_of(target).lookup(target.id)
            if home is not None and len(home.stores.get(target.id, [])) == 1 and target.id not in home.params:
                yield target.id


def _registers(text: str, name: str) -> bool:
    return f'self.register_buffer("{name}", {name}, persistent=False)' in text

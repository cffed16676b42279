"""T1, told of: what a module keeps of its arguments and only hands on may be a tensor, which its move leaves behind.

https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.script import Facts
from ..report import Note
from ._given_tensors import given

SAYS = "if that is a tensor it stays where it is made: a module moves its parameters and buffers alone"


def handed_on(facts: Facts, code: str) -> Iterator[Note]:
    """`self.table = table.cuda()` of a parameter, where nothing shows what it is."""
    for s in facts.walk(ast.Assign):
        kept = [t.attr for t in s.targets if isinstance(t, ast.Attribute)]
        moved = given(facts, s.value) if kept else None
        if moved is None or s.value in facts.buffered or not _is_in_module(facts, s):
            continue
        if _may_be_tensor(facts, moved) and all(_is_handed_on(facts, name) for name in kept):
            line, column, _, _ = facts.text.key(moved)
            says = f"`{facts.short(s)}`: {SAYS}"
            yield Note(line, column + 1, code, f"{says}; `self.register_buffer({kept[0]!r}, {moved.id})`")


def _is_in_module(facts: Facts, s: ast.stmt) -> bool:
    return any(up in facts.classes.modules for up in facts.scopes.ancestors(s))


def _may_be_tensor(facts: Facts, name: ast.Name) -> bool:
    """Whether it is a parameter that the runtime is taken to place, and no name or use tells a module."""
    scope = facts.scopes.scope_of(name)
    given = name.id in scope.params and name.id not in scope.stores and facts.placed.by_runtime(name)
    return given and not facts.placed.used_as_module(name.id, scope)


def _is_handed_on(facts: Facts, name: str) -> bool:
    """Whether an attribute is read, and neither called nor asked for anything."""
    reads = [a for a in facts.attributes.get(name, ()) if isinstance(a.ctx, ast.Load)]
    ups = [(a, facts.scopes.parents.get(a)) for a in reads]
    return bool(ups) and not any(_tells(facts, a, up) for a, up in ups)


def _tells(facts: Facts, read: ast.Attribute, up: ast.AST | None) -> bool:
    """Whether what stands around a read says what it is, a module most likely."""
    if isinstance(up, ast.Call):
        return up.func is read or (facts.names.resolve(up.func) or "").startswith(("torch.nn.", "copy."))
    return isinstance(up, ast.Attribute)

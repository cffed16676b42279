"""What a name is by what it is asked for: a network has parameters, and loads a state."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .script import Facts


def asks(facts: Facts, read: ast.Name, methods: Collection[str]) -> bool:
    """`net` in `net.parameters()`."""
    up = facts.scopes.parents.get(read)
    call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) and up.attr in methods else None
    return isinstance(call, ast.Call) and call.func is up

"""Names at the top of another file of the project, as this one reads them: `settings.WORLD_SIZE`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .script import Facts


def keys_of(facts: Facts, node: ast.Name | ast.Attribute) -> Iterator[str]:
    """`settings.WORLD_SIZE` of that, of `WORLD_SIZE` after `from .settings import WORLD_SIZE`, or after a star."""
    if isinstance(node, ast.Attribute):
        module = _imported(facts, node.value) if isinstance(node.value, ast.Name) else facts.names.resolve(node.value)
        if module:
            yield f"{module.split('.')[-1]}.{node.attr}"
        return
    full = _imported(facts, node)
    if full is not None and "." in full:
        yield ".".join(full.split(".")[-2:])
    elif full is None and facts.scopes.scope_of(node).lookup(node.id) is None:
        for s in facts.walk(ast.ImportFrom):
            if s.module and any(a.name == "*" for a in s.names):
                yield f"{s.module.split('.')[-1]}.{node.id}"


def _imported(facts: Facts, name: ast.Name) -> str | None:
    """What a name was imported as: `a.settings`, `settings.RANK`; a relative import without its dots."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    stores = scope.stores.get(name.id, []) if scope is not None else []
    alias = stores[0] if len(stores) == 1 else None
    if not isinstance(alias, ast.alias):
        return None
    s = facts.scopes.parents[alias]
    if isinstance(s, ast.ImportFrom):
        return f"{s.module}.{alias.name}" if s.module else alias.name
    return alias.name if alias.asname else alias.name.split(".")[0]

"""Networks that a step reaches without naming them are the Module's own, or the Trainer would neither place them nor
average their gradients: those that a function reads which it calls, and those whose parameters an optimizer has by
another name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.asked import asks
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from .chunks import Binder, Chunk, Variable, Variables, bound_before, surely_bound
from .held_networks import held_networks
from .networks import PARAMETERS, made_network
from .nodes import local_function
from .recipe import Recipe

ADDS = ("append", "extend", "insert", "update")


def reached_networks(
    facts: Facts, recipe: Recipe, binder: Binder, variables: Variables, chunks: list[Chunk], optimizers: list[str]
) -> list[str]:
    """The names of networks that the Module does not have yet."""
    scopes = (binder.trunk_scope, facts.scopes.module)
    found = dict(_read_by_functions(facts, chunks, scopes))
    found.update(held_networks(facts, chunks, scopes))
    found.update(_used_below(facts, recipe, binder.trunk_scope))
    found.update(_stepped(facts, binder.trunk_scope, optimizers))
    kept = []
    for name, home in found.items():
        network = name in facts.moved_networks or made_network(facts, name, home) is not None
        if Variable("", name) in variables.attributes or not network:
            continue
        if home is not binder.trunk_scope:
            binder.adopted.add(name)  # a global that a function's loop works with
        if not bound_before(binder, recipe, name):
            continue
        if not surely_bound(facts, recipe, binder, name) and name not in variables.unbound:
            variables.unbound.append(name)
        kept.append(name)
    return kept


def _read_by_functions(facts: Facts, chunks: list[Chunk], homes: tuple[Scope, ...]) -> Iterator[tuple[str, Scope]]:
    """What functions that the steps name read of the scopes around them, and those that these name."""
    ahead: list[ast.AST] = [s for chunk in chunks for s in chunk.statements]
    steps, seen = len(ahead), set()
    for at, root in enumerate(ahead):  # which grows meanwhile
        for n in walk(root):
            if not (isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)):
                continue
            f = local_function(facts, n) or _lambda(facts, n)
            if f is not None and f not in seen:
                seen.add(f)
                ahead.append(f)
            home = facts.scopes.scope_of(n).lookup(n.id) if at >= steps else None
            if home in homes and home is not None:
                yield n.id, home


def _used_below(facts: Facts, recipe: Recipe, home: Scope) -> Iterator[tuple[str, Scope]]:
    """Networks that the script moved, and that it works with when the training is over alone."""
    last = recipe.epoch_loop.end_lineno or 0
    for name in sorted(facts.moved_networks & home.stores.keys()):
        if any(read.lineno > last for read in facts.scopes.reads(name, home)):
            yield name, home


def _lambda(facts: Facts, name: ast.Name) -> ast.Lambda | None:
    """`net = lambda x: head(body(x))`"""
    home = facts.scopes.scope_of(name).lookup(name.id)
    values = facts.devices.assigned(name.id, home) if home is not None else None
    return values[0] if values is not None and len(values) == 1 and isinstance(values[0], ast.Lambda) else None


def _stepped(facts: Facts, scope: Scope, optimizers: list[str]) -> Iterator[tuple[str, Scope]]:
    """`net` for `parameters = list(net.parameters())` and `Adam(parameters)`."""
    seen = set(optimizers)
    ahead = [(value, False) for name in optimizers for value in _values(facts, scope, name)]
    while ahead:
        node, holds = ahead.pop()
        for n in walk(node, ast.Name):
            if n.id in seen:
                continue
            seen.add(n.id)
            asked = any(asks(facts, read, PARAMETERS) for read in facts.scopes.reads(n.id, scope))
            asked = asked or (holds and isinstance(node, (ast.Name, ast.List, ast.Tuple)))
            ahead += [(value, asked) for value in _values(facts, scope, n.id)]
            if asked:
                yield n.id, scope


def _values(facts: Facts, scope: Scope, name: str) -> Iterator[ast.expr]:
    """What a name is given, what it goes through, and what is added to it."""
    for store in scope.stores.get(name, ()):
        s = facts.scopes.statement_of(store)
        if isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and s.value is not None:
            yield s.value
        elif isinstance(s, ast.For):
            yield s.iter
    for read in facts.scopes.reads(name, scope):
        method = facts.scopes.parents.get(read)
        call = facts.scopes.parents.get(method) if isinstance(method, ast.Attribute) and method.attr in ADDS else None
        if isinstance(call, ast.Call) and call.func is method:
            yield from call.args

"""Which network a loop over batches works with, where that may be another than the one that the Trainer has placed.

    best = Net()
    best.load_state_dict(torch.load("best.pt"))
    evaluate(best, test_loader)

What the script makes beside the training is where the script left it, and so have its batches to be.
"""

from __future__ import annotations

import ast

from ..facts.asked import asks
from ..facts.back_from_cpu import itself
from ..facts.loops import LOOPS
from ..facts.nodes import walk
from ..facts.on_cpu import is_on_cpu
from ..facts.scopes import Scope
from ..facts.script import Facts, once_a_file
from ..facts.spelled import spelled
from .called_networks import calls_network, given_networks
from .networks import OF_A_NETWORK
from .optimizers import attribute_values


def network_of(facts: Facts, loop: ast.AST) -> str | None:
    """The name of the one network that a loop, or a comprehension, calls or gives to a function, where it may not be
    the Trainer's.
    """
    body = loop.body if isinstance(loop, ast.For) else [loop]
    calls = [c for s in body for c in walk(s, ast.Call)]
    called = {c.func.id for c in calls if isinstance(c.func, ast.Name) and c.args and _is_network(facts, c, c.func)}
    called |= {n.id for c in calls for n in given_networks(facts, c) if isinstance(n, ast.Name)}
    bound = {n.id for n in walk(loop, ast.Name) if isinstance(n.ctx, ast.Store)}
    if len(called) != 1 or called & bound:
        return None if called else _own_of_object(facts, calls)
    name = called.pop()
    scope = facts.scopes.scope_of(loop).lookup(name)
    if scope is None or name not in scope.params:
        return name if scope is not None and _is_another(facts, name, scope) else None
    given = facts.devices.given(scope, name)
    return name if not given or any(_may_be_another(facts, v) for v in given) else None


def _own_of_object(facts: Facts, calls: list[ast.Call]) -> str | None:
    """The `self.net` that a loop calls, of a class that the file gives several: one trains, another predicts."""
    own = {c.func.attr: c.func for c in calls if isinstance(c.func, ast.Attribute) and _is_own(facts, c, c.func)}
    if len(own) != 1:
        return None
    (net,) = own.values()
    values = attribute_values(facts, net)
    if not values and facts.is_library:
        return spelled(net)
    given = {spelled(n): n for v in values if spelled(n := itself(v)) != spelled(net)}
    another = (_may_be_another(facts, n) for n in given.values() if isinstance(n, ast.Name))
    return spelled(net) if len(given) > 1 or any(another) else None


def _is_own(facts: Facts, call: ast.Call, func: ast.Attribute) -> bool:
    return facts.classes.is_self(func.value) and calls_network(facts, call)


def network_on_cpu(facts: Facts, loop: ast.AST) -> str | None:
    """The network that a loop, or a comprehension, works with and that the script has brought to the CPU above."""
    body = loop.body if isinstance(loop, ast.For) else [loop]
    calls = [c for s in body for c in walk(s, ast.Call)]
    networks = [n for c in calls for n in (*([c.func] if calls_network(facts, c) else ()), *given_networks(facts, c))]
    bound = {n.id for n in walk(loop, ast.Name) if isinstance(n.ctx, ast.Store)}
    outer = (n for n in networks if not any(x.id in bound for x in walk(n, ast.Name)))
    return next((ast.unparse(n) for n in outer if is_on_cpu(facts, n)), None)


def _is_network(facts: Facts, call: ast.Call, name: ast.Name) -> bool:
    """By its name, by how it was made, by what it is given, or by what it is asked for."""
    if calls_network(facts, call):
        return True
    scope = facts.scopes.scope_of(name).lookup(name.id)
    return scope is not None and any(asks(facts, n, OF_A_NETWORK) for n in facts.scopes.reads(name.id, scope))


def _may_be_another(facts: Facts, given: ast.expr) -> bool:
    if isinstance(given, ast.Attribute) and facts.classes.is_self(given.value):
        return given.attr not in _trained(facts)
    scope = facts.scopes.scope_of(given).lookup(given.id) if isinstance(given, ast.Name) else None
    return not isinstance(given, ast.Name) or scope is None or _is_another(facts, given.id, scope)


def _is_another(facts: Facts, name: str, scope: Scope) -> bool:
    """Whether a name is not the trained network's, or is given one more than once, as each fold has its own."""
    stores = scope.stores.get(name, [])
    again = any(isinstance(up, LOOPS) for s in stores for up in facts.scopes.ancestors(s))
    return name not in _trained(facts) or len(stores) > 1 or again


@once_a_file
def _trained(facts: Facts) -> set[str]:
    """The names of what a Trainer is given: `trainer.fit(NetModule(net, criterion), loader)`."""
    found = set()
    for call in facts.calls_of("fit"):
        for n in (n for n in walk(call, ast.Name)):
            found.add(n.id)
            scope = facts.scopes.scope_of(n).lookup(n.id)
            given = (facts.devices.given(scope, n.id) or ()) if scope is not None and n.id in scope.params else ()
            found |= {v.id for v in given if isinstance(v, ast.Name)}
    return found

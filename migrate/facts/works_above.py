"""A network that works above the training on what the script has moved itself: its own move stays, as that does.

net = Net().to(device)
target = net(load_image(path))  # of which load_image() returns image.to(device)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .back_from_cpu import MOVES
from .nodes import walk_own
from .unplaced import before_the_loop, runs_above, runs_backward

if TYPE_CHECKING:
    from .scopes import Scope
    from .script import Facts

DEPTH = 4  # of names of names, and of functions that call functions


def works_above(facts: Facts, node: ast.expr) -> bool:
    """Whether what is moved there is such a network."""
    up = facts.scopes.parents.get(node)
    call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) and up.attr in MOVES else None
    if not facts.lifting or not isinstance(call, ast.Call) or call.func is not up:
        return False
    s = facts.scopes.statement_of(call)
    names = [t for t in getattr(s, "targets", ()) if isinstance(t, ast.Name)]
    names += [node] if isinstance(node, ast.Name) else []
    key = (works_above, *names)
    if names and key not in facts.answers:
        facts.answers[key] = False  # while it is asked
        facts.answers[key] = before_the_loop(facts, s) and any(_works(facts, n, s) for n in names)
    return bool(names) and bool(facts.answers[key])


def _works(facts: Facts, name: ast.Name, moved: ast.stmt) -> bool:
    """Whether a name is called below its move, and above the training, with what is there by then."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    for read in facts.scopes.reads(name.id, scope) if scope is not None else ():
        call = facts.scopes.parents.get(read)
        if not isinstance(call, ast.Call) or facts.scopes.scope_of(read) is not scope:
            continue
        if call.func is not read and not _evaluates(facts, call):
            continue
        s = facts.scopes.statement_of(call)
        if s.lineno > moved.lineno and runs_above(facts, s) and any(_is_moved(facts, a) for a in call.args):
            return True
    return False


def _evaluates(facts: Facts, call: ast.Call) -> bool:
    """`test(net, batches)`: a function of the file that trains nothing."""
    f = facts.devices.function_of(call)
    return f is not None and not runs_backward(facts, f)


def _values(facts: Facts, home: Scope, name: str) -> Iterator[ast.expr]:
    """What a name is given: `a` of `a, b = f(1), f(2)`, too."""
    for store in home.stores.get(name, ()):
        up, s = facts.scopes.parents.get(store), facts.scopes.statement_of(store)
        if isinstance(s, ast.Assign):
            yield from (facts.devices.elements(up, store, s.value) or ()) if isinstance(up, ast.Tuple) else [s.value]


def _is_moved(facts: Facts, value: ast.expr, depth: int = 0, returned: bool = False) -> bool:
    """Whether a value is where the script has put it, by a move, or a `device=`, that stays."""
    if depth > DEPTH:
        return False
    if isinstance(value, ast.Name):
        home = facts.scopes.scope_of(value).lookup(value.id)
        return home is not None and any(
            _is_moved(facts, v, depth + 1, returned) for v in _values(facts, home, value.id)
        )
    if isinstance(value, ast.Call):
        receiver = facts.devices.moved(value)
        placed = [k.value for k in value.keywords if k.arg == "device" and facts.devices.is_device(k.value)]
        if receiver is not None or placed:  # what the script moves where it makes it goes with its network
            several = any(isinstance(t, ast.Tuple) for t in getattr(facts.scopes.statement_of(value), "targets", ()))
            return (returned or several) and (receiver is None or not facts.placed.by_runtime(receiver))
        f = facts.devices.function_of(value)
        if f is not None:
            values = (n.value for n in walk_own(f.body) if isinstance(n, ast.Return) and n.value is not None)
            return any(_is_moved(facts, v, depth + 1, returned=True) for v in values)
        return isinstance(value.func, ast.Attribute) and _is_moved(facts, value.func.value, depth + 1, returned)
    if isinstance(value, (ast.Attribute, ast.Subscript)):
        return _is_moved(facts, value.value, depth + 1, returned)
    if isinstance(value, ast.ListComp):
        return _is_moved(facts, value.elt, depth + 1, returned)
    if isinstance(value, ast.BinOp):
        return any(_is_moved(facts, side, depth + 1, returned) for side in (value.left, value.right))
    return False

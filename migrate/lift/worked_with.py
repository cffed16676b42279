"""Where a network of the loop is called between its epochs, outside of loops over data: itself, or by what holds it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Set

from ..facts.arguments import argument, given_to
from ..facts.asked import asks
from ..facts.classes import Function
from ..facts.in_course import callers_of, function_around
from ..facts.nodes import walk
from ..facts.script import Facts
from .called_networks import called_there
from .chunks import given_arguments
from .loaders import is_loader, looped_over
from .networks import OF_NETWORKS, made_network
from .nodes import local_function
from .own_makers import makes_inside


def worked_with(facts: Facts, statements: Iterable[ast.stmt], networks: Set[str]) -> ast.Call | None:
    """The first call of a network in statements, or in a function that they call, outside of loops over data."""
    for s in statements:
        for n in walk(s, ast.Call):
            if _is_worked_with(facts, n, networks):
                return n
            f = local_function(facts, n.func) if isinstance(n.func, ast.Name) else None
            for call in _called_with(facts, n, f, networks) if f is not None else ():
                return call
            held = _called_by_object(facts, n, networks)
            if held is not None:
                return held
    return None


def _is_worked_with(facts: Facts, call: ast.Call, networks: Set[str]) -> bool:
    """`net(x)`, `net.encode(torch.ones(2, 4))`, and `net.sample(8)` that makes the tensors itself."""
    if isinstance(call.func, ast.Name):
        return call.func.id in networks and bool(call.args or call.keywords) and not in_a_loop(facts, call)
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if not (isinstance(owner, ast.Name) and owner.id in networks) or in_a_loop(facts, call):
        return False
    home, f = called_there(facts, call)
    return isinstance(f, ast.FunctionDef) and (
        any(map(facts.tensors.is_tensor, given_to(call))) or makes_inside(home, f)
    )


def _called_by_object(facts: Facts, call: ast.Call, networks: Set[str]) -> ast.Call | None:
    """The call of a network in a method of an object that was made with it: `self.net(torch.ones(2, 4))`."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if not isinstance(owner, ast.Name) or owner.id in networks or in_a_loop(facts, call):
        return None
    home = facts.scopes.scope_of(owner).lookup(owner.id)
    values = facts.devices.unpacked(owner.id, home) if home is not None else None
    made = values[0] if values is not None and len(values) == 1 else None
    name = made.func.id if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else None
    c = next((c for c in facts.walk(ast.ClassDef) if c.name == name and c not in facts.classes.modules), None)
    if c is None or not isinstance(made, ast.Call):
        return None
    held, methods = _attributes_given(facts, c, made, networks), facts.classes.methods(c)
    reached = read_from(facts, methods, call.func.attr) & methods.keys() if held else ()  # type: ignore[attr-defined]
    for f in sorted(reached):
        for n in walk(methods[f], ast.Call):
            of_self = isinstance(n.func, ast.Attribute) and n.func.attr in held and facts.classes.is_self(n.func.value)
            if of_self and (n.args or n.keywords) and runs_outside_loops(facts, n, c, set()):
                return n
    return None


def _attributes_given(facts: Facts, c: ast.ClassDef, made: ast.Call, networks: Set[str]) -> set[str]:
    """The attributes of an object that are networks it is made with."""
    init = facts.classes.methods(c).get("__init__")
    if init is None:
        return set()
    given = {a.arg: argument(made, init, a.arg, bound=True) for a in (*init.args.args, *init.args.kwonlyargs)}
    named = {n for n, v in given.items() if isinstance(v, ast.Name) and (v.id in networks or _is_made(facts, v))}
    stores = (s for s in walk(init, ast.Assign) if isinstance(s.value, ast.Name) and s.value.id in named)
    return {
        t.attr for s in stores for t in s.targets if isinstance(t, ast.Attribute) and facts.classes.is_self(t.value)
    }


def _is_made(facts: Facts, node: ast.Name) -> bool:
    """Whether a name is given a network: what the loop reads an object of is placed with what that holds."""
    scope = facts.scopes.scope_of(node).lookup(node.id)
    return scope is not None and made_network(facts, node.id, scope) is not None


def read_from(facts: Facts, methods: Mapping[str, Function], method: str) -> set[str]:
    """A method's name and those of its object's attributes and methods that it, and what it calls of these, read."""
    read = set[str]()
    more = {method}
    while more:
        read |= more
        own = (a for m in more if m in methods for a in walk(methods[m], ast.Attribute))
        more = {a.attr for a in own if isinstance(a.ctx, ast.Load) and facts.classes.is_self(a.value)} - read
    return read


def runs_outside_loops(facts: Facts, node: ast.expr, c: ast.ClassDef, loop: Set[ast.AST]) -> bool:
    """Whether a node stands in no loop over data, and where it is in a method of the class, a call of that does not."""
    seen, ahead = set[ast.AST](), [node]
    while ahead:
        at = ahead.pop()
        if in_a_loop(facts, at) or at in loop:
            continue
        f = function_around(facts, at)
        if f is None or facts.classes.holder(f) is not c:
            if not any(m in facts.classes.modules for m in facts.scopes.ancestors(at)):
                return True
        elif f not in seen:
            seen.add(f)
            ahead += callers_of(facts, f)
    return False


def is_network_there(facts: Facts, node: ast.Name) -> bool:
    """Whether a name is a network's where it stands, by what it is called or by what it is asked for."""
    scope = facts.scopes.scope_of(node).lookup(node.id)
    reads = facts.scopes.reads(node.id, scope) if scope is not None else ()
    return facts.loops.is_model_name(node.id) or any(asks(facts, read, OF_NETWORKS) for read in reads)


def _called_with(facts: Facts, call: ast.Call, f: ast.FunctionDef, networks: Set[str]) -> Iterator[ast.Call]:
    """The calls of networks in a function, which it is given or reads, outside of loops over data."""
    given = {name for name, v in given_arguments(f, call).items() if isinstance(v, ast.Name) and v.id in networks}
    own = {*facts.scopes.by_node[f].params, *facts.scopes.by_node[f].stores}
    yield from (n for n in walk(f, ast.Call) if _is_worked_with(facts, n, given | (networks - own)))


def in_a_loop(facts: Facts, node: ast.AST) -> bool:
    """Whether a node stands in a loop, or a comprehension, over a loader: its batches go where the model is."""
    ups = [*facts.scopes.ancestors(node)]
    loops = [g for up in ups for g in ((up,) if isinstance(up, ast.For) else getattr(up, "generators", ()))]
    return any(facts.loops.is_loader(g.iter) or is_loader(facts, looped_over(facts, g)) for g in loops)

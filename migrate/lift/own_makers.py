"""Tensors that functions of a project, and methods of its networks, make on the CPU: `draw(4)`, `net.init_hidden(4)`.

Nothing in a script that names no device says where they go, and the step has the model meet them.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable

from ..codemods.host_reads import is_given, is_number, names_given
from ..facts.arguments import given_to
from ..facts.hosts import names_no_device
from ..facts.nodes import walk
from ..facts.other_files import defined_there, found_there
from ..facts.placed import MAKES_TENSORS
from ..facts.script import Facts, once_a_file
from ..facts.tensor_makers import OF_THE_CPU, is_open
from .chunks import Chunk
from .criteria import is_loss_of_torch
from .networks import made_network
from .nodes import local_function
from .shown import spread

JOINS = {"torch.stack", "torch.cat"}
DEPTH = 3  # of functions that call functions


def makes_tensors(facts: Facts, call: ast.Call, depth: int = 0) -> bool:
    """Whether a call is `next(it)`, or of a function of the project, or a method of a network, that makes tensors."""
    if depth > DEPTH:
        return False
    if isinstance(call.func, ast.Name) and call.func.id == "next":
        return facts.scopes.scope_of(call.func).lookup("next") is None
    home, f = function_of(facts, call)
    if f is None or not _names_none(home):
        return False
    if home.classes.holder(f) is not None:
        return _gives_made(facts, call, depth)
    inside, makes = walk(f, ast.Call), MAKES_TENSORS | JOINS
    return any(home.names.resolve(c.func) in makes or makes_tensors(home, c, depth + 1) for c in inside)


def given_to_model(facts: Facts, chunks: Iterable[Chunk], placed: Container[ast.Call]) -> ast.Call | None:
    """What a step makes, or has a function or a network make, and gives a network; `placed`: what is moved there."""
    statements = [s for chunk in chunks for s in chunk.statements]
    given = {n for s in statements for c in walk(s, ast.Call) if _works_with(facts, c.func) for n in _parts(c)}
    names = {n.id for n in given if isinstance(n, ast.Name)}
    for s in statements if given else ():
        for call in walk(s, ast.Call):
            whole = _of_arithmetic(facts, call)
            meets = call in given or (isinstance(s, ast.Assign) and is_given(s, whole) and names & names_given(s, call))
            made = _is_made(facts, call) and call not in placed
            if meets and (made or _gives_made(facts, call, 0)):
                return call
    return None


def function_of(facts: Facts, call: ast.Call) -> tuple[Facts, ast.FunctionDef | None]:
    """The function that a call runs, and the facts of its file: one of the project, or a method of a network."""
    f = call.func
    if isinstance(f, ast.Name) and (own := local_function(facts, f)) is not None:
        return facts, own
    if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name):
        method = _method(facts, f.value, f.attr)
        if method is not None:
            return method
    there = defined_there(facts, f) if facts.others and isinstance(f, (ast.Name, ast.Attribute)) else None
    if there is None or there.holder is not None or not isinstance(there.f, ast.FunctionDef):
        return facts, None
    return there.facts, there.f


def _method(facts: Facts, owner: ast.Name, name: str) -> tuple[Facts, ast.FunctionDef] | None:
    """A method of the class that an object is made with, where that is a network's."""
    home = facts.scopes.scope_of(owner).lookup(owner.id)
    made = made_network(facts, owner.id, home) if home is not None else None
    if made is None or not isinstance(made.func, ast.Name):
        return None
    of, c = facts, next((c for c in facts.classes.modules if c.name == made.func.id), None)
    if c is None and facts.others and (found := found_there(facts, made.func)) is not None:
        of, c = found[1], found[2] if found[2] in found[1].classes.modules else None
    method = of.classes.methods(c).get(name) if isinstance(c, ast.ClassDef) else None
    return (of, method) if isinstance(method, ast.FunctionDef) else None


def _names_none(facts: Facts) -> bool:
    """Whether a file says nothing of devices: the script as it was, or another one."""
    return facts.without_devices or names_no_device(facts)


def _of_arithmetic(facts: Facts, made: ast.Call) -> ast.expr:
    """The `torch.ones(4, 2) * i` that a tensor is an operand of, which is where the tensor is; else itself."""
    node: ast.expr = made
    while isinstance(up := facts.scopes.parents.get(node), (ast.BinOp, ast.UnaryOp)) and not is_number(made):
        node = up
    return node


def _gives_made(facts: Facts, call: ast.Call, depth: int) -> bool:
    """Whether a call gives back what its function made, and told nothing of where."""
    home, f = function_of(facts, call)
    if f is None or depth > DEPTH or not _names_none(home):
        return False
    for value in (n.value for n in walk(f, ast.Return) if n.value is not None):
        for e in value.elts if isinstance(value, ast.Tuple) else [value]:
            made = _named(home, e)
            if isinstance(made, ast.Call) and (_is_made(home, made) or _gives_made(home, made, depth + 1)):
                return True
    return False


@once_a_file
def makes_inside(home: Facts, f: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method of a network, or one that it calls, makes a tensor and says nothing of where."""
    if not _names_none(home):
        return False
    c = home.classes.holder(f)
    methods = home.classes.methods(c) if c is not None else {}
    seen, ahead = {f}, [f]
    while ahead:
        for call in walk(ahead.pop(), ast.Call):
            func = call.func
            if _is_made(home, call):
                return True
            of_it = isinstance(func, ast.Attribute) and home.classes.is_self(func.value)
            own = methods.get(func.attr) if of_it else None  # type: ignore[attr-defined]
            if own is not None and own not in seen:
                seen.add(own)
                ahead.append(own)
    return False


def _named(facts: Facts, e: ast.expr) -> ast.expr:
    """What a name was given, where that is one thing."""
    home = facts.scopes.scope_of(e).lookup(e.id) if isinstance(e, ast.Name) else None
    values = facts.devices.assigned(e.id, home) if isinstance(e, ast.Name) and home is not None else None
    return values[0] if values is not None and len(values) == 1 else e


def _is_made(facts: Facts, call: ast.Call) -> bool:
    """Also by NumPy, which has no other place: `np.clip(x, 0, 1)` of a batch is a tensor."""
    full = facts.names.resolve(call.func) or ""
    by_numpy = full.startswith("numpy.") and bool(call.args) and _is_of_batch(facts, call.args[0], call)
    return is_open(facts, call) or full in OF_THE_CPU or by_numpy


def _is_of_batch(facts: Facts, e: ast.expr, call: ast.Call) -> bool:
    """Whether a name, brought to the CPU or not, is computed from what the loop around gives: `noisy = x + 0.5`."""
    e = e.func.value if isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr == "cpu" else e
    hot = facts.loops.hot(call)
    if not isinstance(e, ast.Name) or hot is None or not isinstance(hot.loop, ast.For):
        return False
    return e.id in spread(hot.loop.body, {n.id for n in walk(hot.loop.target, ast.Name)}, set(), {})


def _works_with(facts: Facts, func: ast.expr) -> bool:
    """A network, a criterion among them, or a loss of torch.nn.functional: what it is given meets the model."""
    if isinstance(func, ast.Call):  # nn.MSELoss()(out, y)
        return facts.placed.is_module(func)
    full = facts.names.resolve(func)
    return is_loss_of_torch(full) if full is not None else _is_network(facts, func)


def _is_network(facts: Facts, func: ast.expr) -> bool:
    home = facts.scopes.scope_of(func).lookup(func.id) if isinstance(func, ast.Name) else None
    return isinstance(func, ast.Name) and home is not None and made_network(facts, func.id, home) is not None


def _parts(call: ast.Call) -> list[ast.expr]:
    """What a call is given, and the parts of tuples in it."""
    given = given_to(call)
    return [*given, *(e for g in given if isinstance(g, (ast.Tuple, ast.List)) for e in g.elts)]

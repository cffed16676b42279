"""What those who use a plain object give its methods: `fitter.predict(x)` of an x that nothing but the method places.

A method that moves what it is given to a network, and that nothing in the file calls, is for whoever has a tensor when
its object has trained the network: the runtime has placed that then. So is a method of a network's own, where the move
goes to the network itself: `net.sample(noise)`, of whoever has noise.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import argument
from .classes import STEPS
from .held import is_plain
from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts

TRAINS = {"backward", "step", "zero_grad"}
OF_ITSELF = "next(self.parameters()).device"


def is_given_from_outside(facts: Facts, f: ast.AST, name: str) -> bool:
    """Whether a parameter of such a method may be what the runtime does not place."""
    c = facts.classes.holder(f)
    if c is None or not isinstance(f, ast.FunctionDef) or f.name == "__init__":
        return False
    if c in facts.classes.modules and f.name not in ("forward", *STEPS) and not facts.classes.uses_of(f):
        return not _calls(facts, c, f) and _goes_to_its_network(facts, f, name)
    if not is_plain(facts, c):
        return False
    calls = _calls(facts, c, f)
    if calls:
        given = [argument(call, f, name, True) for call in calls]
        return any(v and not isinstance(v, ast.Constant) and not facts.placed.by_runtime(v) for v in given)
    if f.name.startswith("_") or facts.classes.uses_of(f) or not _trains(c):
        return False
    return _is_for_anyone(facts, f, name)


def _calls(facts: Facts, c: ast.ClassDef, f: ast.FunctionDef) -> list[ast.Call]:
    """`fitter.predict(x)`, where fitter is of the class, or may be because no other has such a method."""
    alone = sum(f.name in facts.classes.methods(other) for other in facts.walk(ast.ClassDef)) == 1
    found = []
    for call in facts.calls_of(f.name):
        if not isinstance(call.func, ast.Attribute) or facts.classes.is_self(call.func.value):
            continue
        of = facts.devices.own_movers.class_of(call.func.value)
        if of is c or (of is None and alone and facts.names.resolve(call.func) is None):
            found.append(call)
    return found


def _trains(node: ast.AST) -> bool:
    return any(n.attr in TRAINS for n in walk(node, ast.Attribute))


def _is_for_anyone(facts: Facts, f: ast.FunctionDef, name: str) -> bool:
    """`return self.model(x.to(self.device))`, which trains nothing: it moves the parameter, and calls a network."""
    if _trains(f):
        return False
    calls = list(walk(f, ast.Call))
    moved = (facts.devices.moved(call) for call in calls)
    if not any(isinstance(m, ast.Name) and m.id == name for m in moved):
        return False
    own = facts.scopes.by_node[f].params
    fed = (a for call in calls if facts.loops.is_model_call(call) for a in call.args)
    return any(isinstance(n, ast.Name) and n.id in own for a in fed for n in walk(a))


def _goes_to_its_network(facts: Facts, f: ast.FunctionDef, name: str) -> bool:
    """`x.to(device)` of a parameter, where `device = next(self.parameters()).device`: right wherever the x is."""
    for call in walk(f, ast.Call):
        moved = facts.devices.moved(call)
        if not isinstance(moved, ast.Name) or moved.id != name:
            continue
        for where in facts.devices.device_arguments(call)[:1]:
            value = where.value if isinstance(where, ast.keyword) else where
            own = facts.scopes.by_node[f]
            given = facts.devices.assigned(value.id, own) if isinstance(value, ast.Name) else [value]
            if given and all(ast.unparse(v) == OF_ITSELF for v in given):
                return True
    return False

"""Calls of networks, by other names that a script has for them, too.

raw = net.module if several else net
hits = [(raw(x).argmax(1) == y).sum() for x, y in loader]
"""

from __future__ import annotations

import ast
import builtins

from ..facts.arguments import given_to
from ..facts.asked import asks
from ..facts.back_from_cpu import GIVE_THEMSELVES, itself
from ..facts.classes import Function
from ..facts.loops import last_part
from ..facts.nodes import walk
from ..facts.other_files import found_there
from ..facts.script import Facts, once_a_file
from ..facts.spelled import are_alike, spelled
from .loaders import values_of
from .networks import OF_A_NETWORK
from .optimizers import attribute_values, is_none

LIBRARIES = ("torch", "torchvision", "torchaudio", "copy", "numpy")  # of a network they make something else
DEPTH = 4  # of functions that call functions
HOLD_ONE = ("module", "_orig_mod")  # what wrappers have
WRAPS = {"torch.compile", "torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel"}


def calls_network(facts: Facts, call: ast.Call) -> bool:
    """Whether a call is `model(x)`, or one of what is given nothing but networks."""
    if facts.loops.is_model_call(call):
        return True
    if not (call.args or call.keywords) or facts.names.resolve(call.func):
        return False
    return isinstance(call.func, (ast.Name, ast.Attribute)) and is_network(facts, call.func)


def works_with_network(facts: Facts, call: ast.Call, depth: int = 0) -> bool:
    """Whether a call is one of a network, gives one to a function, or is one of a function that does either."""
    if calls_network(facts, call) or given_networks(facts, call) or _calls_itself(facts, call):
        return True
    if _calls_own_layer(facts, call):
        return True
    there, f = called_there(facts, call) if depth < DEPTH else (facts, None)
    inner = (n for n in walk(f, ast.Call)) if f is not None else ()
    return any(works_with_network(there, n, depth + 1) for n in inner)


def _calls_itself(facts: Facts, call: ast.Call) -> bool:
    """`self(x)`, `self.forward(x)` in a method of a network."""
    f = call.func
    own = f.value if isinstance(f, ast.Attribute) and f.attr == "forward" else f
    if not (isinstance(own, ast.Name) and own.id == "self"):
        return False
    return any(up in facts.classes.modules for up in facts.scopes.ancestors(call))


def _calls_own_layer(facts: Facts, call: ast.Call) -> bool:
    """`self.layer(x)` in a method of a network."""
    f = call.func
    if not (isinstance(f, ast.Attribute) and facts.classes.is_self(f.value) and call.args):
        return False
    if not any(up in facts.classes.modules for up in facts.scopes.ancestors(call)):
        return False
    values = attribute_values(facts, f)
    return bool(values) and all(isinstance(v, ast.Call) and facts.placed.is_module(v) for v in values)


def given_networks(facts: Facts, call: ast.Call) -> list[ast.expr]:
    """The net of `loss_of(net, batch)`: what a function of the script's own gets beside other things."""
    package = (facts.names.resolve(call.func) or "").partition(".")[0]
    own = isinstance(call.func, (ast.Name, ast.Attribute)) and package not in LIBRARIES
    given = given_to(call) if own and not hasattr(builtins, last_part(call.func) or "") else []
    found: list[ast.expr] = [a for a in given if isinstance(a, (ast.Name, ast.Attribute)) and is_network(facts, a)]
    return found if len(found) < len(given) else []


def called_there(facts: Facts, call: ast.Call) -> tuple[Facts, ast.AST | None]:
    """The function that is called, or the one method of that name which the project's classes have, in its file."""
    f = call.func
    if not isinstance(f, ast.Attribute):
        found = found_there(facts, f) if isinstance(f, ast.Name) and facts.others else None
        return (found[1], found[2]) if found is not None else (facts, facts.devices.function_of(call))
    c = facts.devices.own_movers.class_of(f.value)
    if c is not None:
        return facts, facts.classes.methods(c).get(f.attr)
    if facts.names.resolve(f) is not None:
        return facts, None
    files = [facts, *(there for o in facts.others if f"def {f.attr}(" in o.text and (there := o.facts()) is not None)]
    named = [(there, m[f.attr]) for there in files for m in _methods(there) if f.attr in m]
    return named[0] if len(named) == 1 else (facts, None)


@once_a_file
def _methods(facts: Facts) -> list[dict[str, Function]]:
    return [facts.classes.methods(c) for c in facts.walk(ast.ClassDef)]


def is_network(facts: Facts, node: ast.expr) -> bool:
    """Whether each value that an expression may have is a network."""
    return _is_network(facts, node, set())


def _is_network(facts: Facts, node: ast.expr, asked: set[object]) -> bool:
    if isinstance(node, ast.IfExp):
        return all(_is_network(facts, v, asked) for v in (node.body, node.orelse))
    if isinstance(node, ast.Call):
        f = node.func
        if isinstance(f, ast.Attribute) and f.attr in GIVE_THEMSELVES:
            return _is_network(facts, f.value, asked)
        return facts.names.resolve(f) in WRAPS and bool(node.args) and _is_network(facts, node.args[0], asked)
    last = last_part(node)
    if last is None:
        return False
    if facts.loops.is_model_name(last):
        return True
    if isinstance(node, ast.Attribute) and node.attr in HOLD_ONE:
        return _is_network(facts, node.value, asked)
    return _is_given_networks(facts, node, last, asked)


def _is_given_networks(facts: Facts, node: ast.expr, last: str, asked: set[object]) -> bool:
    name = node if isinstance(node, ast.Name) else None
    scope = facts.scopes.scope_of(name).lookup(last) if name is not None else None
    key = (scope, spelled(node))
    if key in asked:
        return True  # what a name is made of itself says nothing
    asked.add(key)
    if isinstance(node, ast.Attribute):
        values = attribute_values(facts, node)
    elif scope is None or name is None or facts.scopes.generator_of(name) is not None:
        return False
    elif any(asks(facts, read, OF_A_NETWORK) for read in facts.scopes.reads(last, scope)):
        return True
    else:
        values = values_of(facts, last, scope)
    shown = [v for v in values if not is_none(v) and not are_alike(itself(v), node)]
    return bool(shown) and all(_is_network(facts, v, asked) for v in shown)

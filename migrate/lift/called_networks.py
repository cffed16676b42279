"""Calls of networks, by other names that a script has for them, too.

raw = net.module if several else net
hits = [(raw(x).argmax(1) == y).sum() for x, y in loader]
"""

from __future__ import annotations

import ast

from ..facts.asked import asks
from ..facts.loops import last_part
from ..facts.script import Facts
from .loaders import values_of
from .networks import OF_A_NETWORK
from .optimizers import attribute_values, is_none

GIVE_THEMSELVES = {"to", "cuda", "cpu", "train", "eval", "float", "double", "half", "requires_grad_", "share_memory"}
HOLD_ONE = ("module", "_orig_mod")  # what wrappers have
WRAPS = {"torch.compile", "torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel"}


def calls_network(facts: Facts, call: ast.Call) -> bool:
    """Whether a call is `model(x)`, or one of what is given nothing but networks."""
    if facts.loops.is_model_call(call):
        return True
    if not (call.args or call.keywords) or facts.names.resolve(call.func):
        return False
    return isinstance(call.func, ast.Name | ast.Attribute) and _is_network(facts, call.func, set())


def _is_network(facts: Facts, node: ast.expr, asked: set[object]) -> bool:
    """Whether each value that an expression may have is a network."""
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
    key = (scope, ast.unparse(node))
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
    shown = [v for v in values if not is_none(v)]
    return bool(shown) and all(_is_network(facts, v, asked) for v in shown)

"""The networks of a step are the Module's own, or the Trainer would neither place them nor average their gradients."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from .recipe import CannotLift, DataPass

OF_A_NETWORK = ("parameters", "named_parameters", "state_dict", "load_state_dict", "train", "eval")


def check_networks(facts: Facts, train: DataPass) -> None:
    """Raise for a step that calls a network which stays an attribute of the loop's object: `self.model(x)`, set where
    this file does not show it, or more than once.
    """
    for s in train.body:
        for call in walk(s):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args):
                continue
            root = call.func.value
            if isinstance(root, ast.Name) and root.id == "self" and _is_network(facts, call.func.attr):
                raise CannotLift(call, f"`{facts.short(call.func)}` is set elsewhere than in the constructor")


def _is_network(facts: Facts, name: str) -> bool:
    """Whether the attributes of this name are treated as modules are, and none is a method."""
    if any(f.name == name for f in facts.walk(ast.FunctionDef)):
        return False
    methods = (n for n in facts.walk(ast.Attribute) if n.attr in OF_A_NETWORK)
    return any(isinstance(n.value, ast.Attribute) and n.value.attr == name for n in methods)

"""Networks that only some runs make: `if args.distill: teacher = Net().to(device)`.

The Module has them, None where they were not made: as globals of the script nothing would place them, whose moves go.
"""

from __future__ import annotations

import ast

from ..facts.loops import MODEL_NAME
from ..facts.scopes import Scope
from ..facts.script import Facts
from .contained import holds_networks
from .networks import unchained


def may_be_network(facts: Facts, name: str, scope: Scope) -> bool:
    """Whether a name that some runs alone give a value is a network then, or a list of some."""
    values = facts.devices.assigned(name, scope)
    made = [v for v in values or () if isinstance(v, ast.Call | ast.Subscript)]
    if any(isinstance(v, ast.Call) and facts.placed.is_module(v) for v in map(unchained, made)):
        return True
    if holds_networks(facts, name, scope):
        return True
    treated = bool(MODEL_NAME.search(name)) or facts.placed.is_called(name, scope)
    return treated and (values is None or bool(made))

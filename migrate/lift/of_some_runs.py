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
from .optimizers import is_optimizer_name, is_scheduler_name


def may_be_network(facts: Facts, name: str, scope: Scope) -> bool:
    """Whether a name that some runs alone give a value is a network then, or a list of some."""
    values = facts.devices.assigned(name, scope)
    made = [v for v in values or () if isinstance(v, (ast.Call, ast.Subscript))]
    if any(isinstance(v, ast.Call) and facts.placed.is_module(v) for v in map(unchained, made)):
        return True
    if holds_networks(facts, name, scope):
        return True
    if not MODEL_NAME.search(name) and not facts.placed.is_called(name, scope):
        return False
    return values is None or any(not (isinstance(v, ast.Call) and _is_optimizers(facts, v)) for v in made)


def _is_optimizers(facts: Facts, call: ast.Call) -> bool:
    """An optimizer or a scheduler is asked as a network is: `optimizer.load_state_dict(...)`."""
    full = facts.names.resolve(call.func) or ""
    return is_optimizer_name(full) or is_scheduler_name(full)

"""A network that a script makes below its training and gives to a function of a file that trains as well.

    best = Net().cuda()
    best.load_state_dict(net.state_dict())
    evaluate(best, loader)  # of a file whose attack calls backward()

The loops of that file are kept, and what they move goes where their Runtime is: the network has to be there too.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .back_from_cpu import MOVES
from .other_files import found_there
from .unplaced import below_training

if TYPE_CHECKING:
    from .script import Facts

TRAINS = "backward("


def is_tested_beyond(facts: Facts, node: ast.expr) -> bool:
    """Whether what a move is called on is such a network."""
    if not facts.lifting or not any(TRAINS in o.text for o in facts.others):
        return False
    up = facts.scopes.parents.get(node)
    if not isinstance(up, ast.Attribute) or up.attr not in MOVES:
        return False
    s = facts.scopes.statement_of(node)
    if not below_training(facts, s):
        return False
    named = [node, *(s.targets if isinstance(s, ast.Assign) else ())]
    return any(_is_given_there(facts, n) for n in named if isinstance(n, ast.Name))


def _is_given_there(facts: Facts, name: ast.Name) -> bool:
    scope = facts.scopes.scope_of(name).lookup(name.id)
    for read in facts.scopes.reads(name.id, scope) if scope is not None else ():
        call = facts.scopes.parents.get(read)
        if isinstance(call, ast.keyword):
            call = facts.scopes.parents.get(call)
        if isinstance(call, ast.Call) and call.func is not read:
            found = found_there(facts, call.func)
            if found is not None and TRAINS in found[0].text:
                return True
    return False

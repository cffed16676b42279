"""Networks that the script has brought to the CPU, where it calls them: `net.cpu()`, `to_device("cpu", net)` above."""

from __future__ import annotations

import ast

from .arguments import given_to
from .asked_by_callers import names_cpu
from .back_from_cpu import MOVES, goes_to_cpu
from .nodes import FUNCTIONS, walk
from .script import Facts
from .spelled import spelled


def is_on_cpu(facts: Facts, network: ast.expr) -> bool:
    """Whether the last that the statements above do with a network's place is to bring it there."""
    if not facts.devices.hosts.names_host and "cpu" not in facts.attributes:
        return False
    name, at = spelled(network), facts.scopes.statement_of(network)
    while block := facts.scopes.block_of(at):
        for above in reversed(block[: block.index(at)]):
            brought = _brings(facts, above, name)
            if brought is not None:
                return brought
        up = facts.scopes.parents.get(at)
        if not isinstance(up, ast.stmt) or isinstance(up, FUNCTIONS):
            return False
        at = up
    return False


def _brings(facts: Facts, s: ast.stmt, name: str) -> bool | None:
    """Whether a statement brings a network to the CPU, or elsewhere; None where it does neither."""
    found = None
    for call in (n for n in walk(s, ast.Call)):
        if isinstance(call.func, ast.Attribute) and spelled(call.func.value) == name:
            if goes_to_cpu(facts, call):
                found = True
            elif call.func.attr in MOVES:
                found = False
        given = given_to(call)
        if any(isinstance(a, (ast.Name, ast.Attribute)) and spelled(a) == name for a in given):
            there = [names_cpu(facts, a) for a in given if facts.devices.is_device(a)]
            found = any(there) if there else found
    return found

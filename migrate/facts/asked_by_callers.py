"""Functions that move by a device which their callers say, and that some callers ask for the CPU by name.

`def to_device(device, net): net.to(device)`, `to_device(torch.device("cpu"), net)` to sample there, and back: such a
move is the callers', as `net.to("cpu")` is the script's.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import argument, is_static

if TYPE_CHECKING:
    from .script import Facts


def is_asked_for_cpu(facts: Facts, where: ast.expr) -> bool:
    """Whether a place is a parameter of the function around, by which a call of it, here or elsewhere, says the CPU."""
    scope = facts.scopes.scope_of(where).lookup(where.id) if isinstance(where, ast.Name) else None
    if scope is None or not isinstance(where, ast.Name) or where.id not in scope.params or where.id in scope.stores:
        return False
    f = scope.node
    if not isinstance(f, ast.FunctionDef):
        return False
    key = (is_asked_for_cpu, f, where.id)
    if key not in facts.answers:
        facts.answers[key] = any(_is_asked_in(there, facts, f, where.id) for there in _files(facts, f.name))
    found: bool = facts.answers[key]
    return found


def _files(facts: Facts, name: str) -> list[Facts]:
    """The file, and others that may call the function and name the CPU."""
    others = [o for o in facts.others if "cpu" in o.text and f"{name}(" in o.text]
    found = [facts] if "cpu" in facts.text.text else []
    return found + [there for o in others if (there := o.facts()) is not None]


def _is_asked_in(there: Facts, facts: Facts, f: ast.FunctionDef, parameter: str) -> bool:
    bound = facts.classes.holder(f) is not None
    if not (facts.devices.hosts.names_others or there.devices.hosts.names_others):
        return False  # then the CPU is the script's device
    for call in there.names.nodes.calls.get(f.name, ()):
        if isinstance(call.func, ast.Attribute) is not bound and there is facts:
            continue
        given = argument(call, f, parameter, bound and not is_static(f))
        if given is not None and names_cpu(there, given):
            return True
    return False


def names_cpu(facts: Facts, given: ast.expr) -> bool:
    """`"cpu"`, `torch.device("cpu")`; not a name for the script's device."""
    if isinstance(given, ast.Call) and facts.names.resolve(given.func) == "torch.device" and len(given.args) == 1:
        given = given.args[0]
    return isinstance(given, ast.Constant) and isinstance(given.value, str) and given.value.startswith("cpu")

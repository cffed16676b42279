"""Networks that the script keeps on the CPU on purpose: its steps bring there what they give one, `teacher(x.cpu())`.

The Module has them with the others and is placed whole; when the fit starts, they go back.
"""

from __future__ import annotations

import ast

from ..codemods.back_on_cpu import brought
from ..facts.arguments import given_to
from ..facts.nodes import walk
from ..facts.script import Facts
from .called_networks import is_network
from .chunks import Binder, Chunk, Variable, Variables
from .networks import unchained


def cpu_networks(facts: Facts, binder: Binder, chunks: list[Chunk], variables: Variables) -> list[str]:
    """`self.teacher.cpu()`, of what the constructor is given and nothing calls with what is elsewhere."""
    if "cpu" not in facts.text.text:
        return []
    given: dict[str, list[bool]] = {}
    for call in (n for c in chunks for s in c.statements for n in walk(s, ast.Call) if n.args):
        var = binder.variable(call.func) if isinstance(call.func, ast.Name) else None
        if isinstance(var, Variable) and var.name in variables.constructor and _is_network(facts, binder, call.func):
            given.setdefault(var.name, []).append(_meets_there(facts, call))
    names = [n for n, there in given.items() if all(there) and Variable("", n) in variables.attributes]
    return [f"self.{variables.attributes[Variable('', n)]}.cpu()" for n in names]


def _meets_there(facts: Facts, call: ast.Call) -> bool:
    """Whether a network gets what is brought to the CPU, and nothing that stays elsewhere."""
    first, *others = given_to(call)
    return brought(facts, first) and all(brought(facts, a) or not facts.placed.by_runtime(a) for a in others)


def _is_network(facts: Facts, binder: Binder, func: ast.expr) -> bool:
    """By its name, or by the layer of torch's that it is made as."""
    values = facts.devices.unpacked(func.id, binder.trunk_scope) or [] if isinstance(func, ast.Name) else []
    made = [v for v in map(unchained, values) if isinstance(v, ast.Call)]
    return is_network(facts, func) or (bool(made) and all(map(facts.placed.is_module, made)))

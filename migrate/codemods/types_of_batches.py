"""T1: a type of the CPU is a dtype where it is given to a batch that the script left there, or moves then.

`x.type(torch.FloatTensor)` says where a tensor is, too, and the batch is where the model is now.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.cpu_types import DTYPES, cast_on_cpu
from ..facts.plain import VARIABLE
from ..facts.script import Facts
from ..facts.tensor_methods import METHODS
from .back_on_cpu import is_left
from .base import Change, Codemod
from .rewrites import source
from .tensor_types import torch_of


class TypesOfBatches(Codemod):
    code = "PTM108"
    name = "types-of-batches"

    def plan(self, facts: Facts) -> Iterator[Change]:
        torch = torch_of(facts)
        if torch is None or "type" not in facts.attributes:
            return
        moved = [m for c in facts.walk(ast.Call) if (m := facts.devices.moved(c)) is not None]
        calls = [up for a in facts.attributes["type"] if isinstance(up := facts.scopes.parents.get(a), ast.Call)]
        left = [c for c in calls if isinstance(c.func, ast.Attribute) and is_left(facts, c.func.value)]
        for cast in dict.fromkeys([*(c for m in moved for c in _casts(facts, m)), *left]):
            kind = cast_on_cpu(facts, cast)
            if kind is not None and not facts.is_fixed(cast):
                given, new = cast.args[0], f"{torch}.{DTYPES[kind]}"
                says = f"`{facts.short(given)}` became `{new}`: it names the CPU, and the batch is where the model is"
                yield Change(given, self.edit(facts, cast, says), source(new), (given,))


def _casts(facts: Facts, node: ast.expr) -> Iterator[ast.Call]:
    """What gives a value its type: `x.type(T)` of `Variable(x.type(T)).view(-1)`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and facts.names.resolve(node.func) == VARIABLE and node.args:
            node = node.args[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            if node.func.attr == "type":
                yield node
            node = node.func.value
        else:
            return

"""T4: a sampler class derived from DistributedSampler, in a program that connects its processes by hand.

Plain, it is one process's: its base is told so, where nothing has connected processes to ask, and the runtime divides
the batches of what it draws.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument_at
from ..facts.nodes import walk
from ..facts.script import Facts
from .argument_rewrites import change_call
from .base import Change, Codemod
from .sampler_arguments import SAMPLER
from .sampler_entries import WHY

PARAMETERS = ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last")


def of_one(codemod: Codemod, facts: Facts) -> Iterator[tuple[str, Change]]:
    """The calls that say how many processes there are, with the name of the class that they settle."""
    for c in facts.walk(ast.ClassDef) if facts.by_hand else ():
        if not any(facts.names.resolve(base) == SAMPLER for base in c.bases):
            continue
        own = next((f for f in c.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)
        found = _of_base(facts, own) if own is not None else _made(facts, c.name)
        for call, parameters in found:
            if not (_spreads(call) or [getattr(a, "value", None) for a in _said(call, parameters)] == [1, 0]):
                yield c.name, _change(codemod, facts, call, parameters)


def _of_base(facts: Facts, f: ast.FunctionDef) -> Iterator[tuple[ast.Call, tuple[str, ...]]]:
    """`super().__init__(data, rank=rank)`, and `DistributedSampler.__init__(self, data, rank=rank)`."""
    for call in walk(f):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "__init__":
            of = call.func.value
            if isinstance(of, ast.Call) and getattr(of.func, "id", "") == "super":
                yield call, PARAMETERS
            elif facts.names.resolve(of) == SAMPLER:
                yield call, ("self", *PARAMETERS)


def _made(facts: Facts, name: str) -> Iterator[tuple[ast.Call, tuple[str, ...]]]:
    """The calls of a class that is made as its base is."""
    for call in facts.walk(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == name:
            yield call, PARAMETERS


def _spreads(call: ast.Call) -> bool:
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


def _said(call: ast.Call, parameters: tuple[str, ...]) -> list[ast.expr | None]:
    """How many processes a call says there are, and which of them this is."""
    return [argument_at(call, n, parameters.index(n)) for n in ("num_replicas", "rank")]


def _change(codemod: Codemod, facts: Facts, call: ast.Call, parameters: tuple[str, ...]) -> Change:
    dropped = tuple(a for a in _said(call, parameters) if a is not None)
    says = f"`{facts.short(call)}` is that of one process: {WHY}"
    return Change(
        call,
        codemod.edit(facts, call, says),
        change_call(parameters, set(), {"num_replicas": "1", "rank": "0"}),
        dropped,
    )

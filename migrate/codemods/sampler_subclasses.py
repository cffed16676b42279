"""T4: a sampler class derived from DistributedSampler, in a program that connects its processes by hand.

Plain, it is one process's: its base is told so, where nothing has connected processes to ask, and the runtime divides
the batches of what it draws.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument_at
from ..facts.distribution import SAMPLER
from ..facts.dividing import class_there
from ..facts.nodes import walk
from ..facts.script import Facts
from .argument_rewrites import change_call
from .base import Change, Codemod
from .sampler_entries import WHY

PARAMETERS = ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last")


def of_one(codemod: Codemod, facts: Facts) -> Iterator[tuple[str, Change | None]]:
    """The calls that say how many processes there are, with the name of the class that they settle, if here."""
    for c in facts.walk(ast.ClassDef) if facts.by_hand else ():
        if _is_derived(facts, c):
            told = _of_base(facts, c)
            for call, parameters in _made(facts, c.name) if told is None else told:
                if not (_spreads(call) or _is_of_one(call, parameters)):
                    yield c.name, _change(codemod, facts, call, parameters)
    for call in facts.walk(ast.Call) if facts.by_hand and facts.others else ():
        found = class_there(facts, call)
        if found is None or not _is_derived(*found) or _spreads(call):
            continue
        told = _of_base(*found)
        if told is None and not _is_of_one(call, PARAMETERS):
            yield found[1].name, _change(codemod, facts, call, PARAMETERS)
        elif told and not any(_spreads(c) for c, _ in told):
            yield found[1].name, None  # in its own file


def _is_derived(facts: Facts, c: ast.ClassDef) -> bool:
    return any(facts.names.resolve(base) == SAMPLER for base in c.bases)


def _of_base(facts: Facts, c: ast.ClassDef) -> list[tuple[ast.Call, tuple[str, ...]]] | None:
    """`super().__init__(data, rank=rank)`, and `DistributedSampler.__init__(self, data, rank=rank)`; None for a class
    that is made as its base is.
    """
    own = next((f for f in c.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)
    found: list[tuple[ast.Call, tuple[str, ...]]] = []
    for call in walk(own) if own is not None else ():
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "__init__":
            of = call.func.value
            if isinstance(of, ast.Call) and getattr(of.func, "id", "") == "super":
                found.append((call, PARAMETERS))
            elif facts.names.resolve(of) == SAMPLER:
                found.append((call, ("self", *PARAMETERS)))
    return found if own is not None else None


def _made(facts: Facts, name: str) -> Iterator[tuple[ast.Call, tuple[str, ...]]]:
    """The calls of a class that is made as its base is."""
    for call in facts.walk(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == name:
            yield call, PARAMETERS


def _spreads(call: ast.Call) -> bool:
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


def _is_of_one(call: ast.Call, parameters: tuple[str, ...]) -> bool:
    return [getattr(a, "value", None) for a in _said(call, parameters)] == [1, 0]


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

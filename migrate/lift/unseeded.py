"""Generators without a seed that a step draws from: every process has one of its own, and draws other numbers.

`rng = np.random.RandomState()`, `random.Random(None).random()`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import given_to
from ..facts.other_files import defined_there
from ..facts.script import Facts
from ..report import Note
from .draws import CODE, reached_calls
from .loaders import values_of
from .recipe import DataPass

GENERATORS = {"numpy.random.RandomState", "numpy.random.default_rng", "random.Random"}
SAYS = "has no seed: every process draws numbers of its own from it, where one draws one series: give it a seed"


def unseeded(facts: Facts, train: DataPass) -> list[Note]:
    """A note for each such generator, where it is made, or where a step calls the other file that makes it."""
    notes: dict[ast.AST, Note] = {}
    for call in reached_calls(facts, train.body, set()):
        for made in _generators(facts, call):
            notes[made] = _note(facts, made, "")
        there = defined_there(facts, call.func) if facts.others else None
        if there is None or not isinstance(there.f, ast.FunctionDef):
            continue
        for inner in reached_calls(there.facts, there.f.body, set()):
            for made in _generators(there.facts, inner):
                notes[made] = _note(
                    facts, call, f" comes to `{there.facts.short(made)}` of {there.file.stem}.py, which"
                )
    return list(notes.values())


def _note(facts: Facts, at: ast.Call, through: str) -> Note:
    line, column, _, _ = facts.text.key(at)
    return Note(line, column + 1, CODE, f"`{facts.short(at)}`{through} {SAYS}")


def _generators(facts: Facts, call: ast.Call) -> Iterator[ast.Call]:
    """The generator that a call makes, or that a method is called of, where it has no seed."""
    made: list[ast.expr] = [call]
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(owner, ast.Name) and _is_seeded(facts, owner):
        return
    if isinstance(owner, ast.Name) and (scope := facts.scopes.scope_of(owner).lookup(owner.id)) is not None:
        made += values_of(facts, owner.id, scope)
    for m in made:
        if isinstance(m, ast.Call) and facts.names.resolve(m.func) in GENERATORS:
            seeds = given_to(m)
            if not seeds or all(isinstance(s, ast.Constant) and s.value is None for s in seeds):
                yield m


def _is_seeded(facts: Facts, owner: ast.Name) -> bool:
    """`own.seed(3)`, wherever it is called."""
    return any(isinstance(a.value, ast.Name) and a.value.id == owner.id for a in facts.attributes.get("seed", ()))

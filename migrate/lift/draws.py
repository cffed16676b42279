"""Random numbers that a step draws for its batch: a process that has a part of the batch draws for that part."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.script import Facts
from ..report import Note
from .recipe import DataPass

CODE = "PTM706"
TORCH = {
    f"torch.{name}"
    for name in (
        "randn", "rand", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson", "randn_like",
        "rand_like", "randint_like",
    )
}  # fmt: skip
IN_PLACE = {"normal_", "uniform_", "bernoulli_", "exponential_", "random_", "log_normal_", "cauchy_", "geometric_"}
MODULES = ("numpy.random.", "random.")
NO_DRAW = {"seed", "get_state", "set_state", "getstate", "setstate", "default_rng", "RandomState", "Random"}


def drawn(facts: Facts, train: DataPass) -> list[Note]:
    """A note for each call that draws random numbers in the step, in what it calls, and in a data set of this file."""
    notes = []
    items = [f for f in facts.walk(ast.FunctionDef) if f.name == "__getitem__"]
    for call in dict.fromkeys(_calls(facts, [*train.body, *items], set())):
        if _draws(facts, call):
            line, column, _, _ = facts.text.key(call)
            says = (
                f"`{facts.short(call)}` draws for this process's part of the batch: on several processes other numbers"
            )
            notes.append(Note(line, column + 1, CODE, f"{says} than one process draws"))
    return notes


def _draws(facts: Facts, call: ast.Call) -> bool:
    full = facts.names.resolve(call.func) or ""
    if full in TORCH:
        return not any(k.arg == "generator" for k in call.keywords)
    if full.startswith(MODULES):
        return full.rsplit(".", 1)[-1] not in NO_DRAW
    return not full and isinstance(call.func, ast.Attribute) and call.func.attr in IN_PLACE


def _calls(facts: Facts, body: list[ast.stmt], seen: set[str]) -> Iterator[ast.Call]:
    """The calls of a block and of the file's own functions that it calls, once each."""
    functions = {f.name: f for f in facts.tree.body if isinstance(f, ast.FunctionDef)}
    for s in body:
        for n in walk(s):
            if not isinstance(n, ast.Call):
                continue
            yield n
            name = n.func.id if isinstance(n.func, ast.Name) else ""
            if name in functions and name not in seen:
                seen.add(name)
                yield from _calls(facts, functions[name].body, seen)

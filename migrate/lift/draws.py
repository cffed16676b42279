"""Random numbers that a script draws for its batches: what several processes draw otherwise than one is told of."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from ..facts.back_from_cpu import itself
from ..facts.nodes import walk
from ..facts.other_files import defined_there
from ..facts.script import Facts
from ..report import Note
from .holders import methods_of
from .loaders import values_of
from .recipe import DataPass

CODE = "PTM706"
TORCH = {
    f"torch.{name}"
    for name in (
        "randn", "rand", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson", "binomial",
        "randn_like", "rand_like", "randint_like",
    )
}  # fmt: skip
IN_PLACE = {"normal_", "uniform_", "bernoulli_", "exponential_", "random_", "log_normal_", "cauchy_", "geometric_"}
MODULES = ("numpy.random.", "random.")
NO_DRAW = {"seed", "get_state", "set_state", "getstate", "setstate", "default_rng", "RandomState", "Random"}
BY_VALUE = {"torch.poisson", "torch.binomial"}  # how much they draw depends on what they are given
BY_COUNT = {"shuffle", "permutation", "permuted", "choices", "sample", "multivariate_normal", "dirichlet"}
ONE_BY_ONE = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.For, ast.While)
# how many samples a batch has: a process has fewer
SAMPLES = re.compile(
    r"t?range\((len\((?!\w*(layer|param|weight|module|block|net|model|loss))\w+\)"
    r"|(?!\w*(param|weight))\w+\.(shape\[0\]|size\(0\))|batch_size|bsz)\)\Z"
)
NOT_IN_USE = ("__init__", "reset", "init", "sample", "generate")  # methods that an evaluation's pass does not run


def drawn(facts: Facts, train: DataPass) -> list[Note]:
    """A note for each call whose numbers are other ones on several processes, with the global batch kept: what the step
    draws in another way than for the batch at once.
    """
    notes = []
    for call in dict.fromkeys(reached_calls(facts, train.body, set())):
        if draws(facts, call) and not _whole(facts, call, train):
            says = "draws for this process's part of the batch: on several processes other numbers than one draws"
            notes.append(_note(facts, call, says))
        elif facts.others and (found := _drawn_there(facts, call, train)) is not None:
            says = f"draws for this process's part of the batch ({found}): on several processes other numbers than one"
            notes.append(_note(facts, call, f"{says} draws"))
    return notes


def _drawn_there(facts: Facts, call: ast.Call, train: DataPass) -> str | None:
    """What a function of another file draws so, or a network of one when it is called."""
    values = []
    if isinstance(call.func, ast.Name) and (scope := facts.scopes.scope_of(call.func).lookup(call.func.id)) is not None:
        values = [itself(v) for v in values_of(facts, call.func.id, scope)]
    made = values[0].func if len(values) == 1 and isinstance(values[0], ast.Call) else None
    there = defined_there(facts, call.func) or (defined_there(facts, made) if made is not None else None)
    if there is None or (there.holder is not None and made is None):
        return None
    for inner in reached_calls(there.facts, there.f.body if isinstance(there.f, ast.FunctionDef) else [], set()):
        if draws(there.facts, inner) and not _whole(there.facts, inner, train):
            return f"`{there.facts.short(inner)}` of {there.file.stem}.py"
    return None


def draws_in_evaluation(facts: Facts, evaluate: DataPass) -> ast.Call | None:
    """A call that draws random numbers for what is evaluated: in the pass, or in a module of this file.

    What a module draws in training alone stands under `self.training`.
    """
    bodies: list[ast.stmt] = list(evaluate.body)
    for c in facts.classes.modules:
        bodies += [f for name, f in facts.classes.methods(c).items() if not name.startswith(NOT_IN_USE)]
    found = (call for call in reached_calls(facts, bodies, set()) if draws(facts, call))
    return next((call for call in found if not _in_training(facts, call)), None)


def _note(facts: Facts, call: ast.Call, says: str) -> Note:
    line, column, _, _ = facts.text.key(call)
    return Note(line, column + 1, CODE, f"`{facts.short(call)}` {says}")


def draws(facts: Facts, call: ast.Call) -> bool:
    full = facts.names.resolve(call.func) or ""
    if full in TORCH:
        return not any(k.arg == "generator" for k in call.keywords)
    if full.startswith(MODULES):
        return full.rsplit(".", 1)[-1] not in NO_DRAW
    return not full and isinstance(call.func, ast.Attribute) and call.func.attr in IN_PLACE


def _whole(facts: Facts, call: ast.Call, train: DataPass) -> bool:
    """Does the runtime draw it for the whole batch, or alike on all processes?"""
    full = facts.names.resolve(call.func) or ""
    around = list(itertools.takewhile(lambda up: up is not train.loop, facts.scopes.ancestors(call)))
    if any(_goes_over_samples(up) for up in around):
        return False
    if not full.startswith(MODULES):
        return full not in BY_VALUE
    name = full.rsplit(".", 1)[-1]
    if name in BY_COUNT or (name == "choice" and len(call.args) + len(call.keywords) > 1):
        return False
    if full.startswith("numpy") and (call.args or call.keywords):
        return isinstance(call.func, ast.Attribute)  # a name of its own is not seen at work
    return not any(isinstance(up, ONE_BY_ONE) for up in around)


def _goes_over_samples(loop: ast.AST) -> bool:
    """`for i in range(len(x)):`, `for b in range(x.shape[0]):`"""
    over = [loop.iter] if isinstance(loop, ast.For) else [g.iter for g in getattr(loop, "generators", ())]
    return any(SAMPLES.match(ast.unparse(x)) for x in over)


def _in_training(facts: Facts, call: ast.Call) -> bool:
    tests = [up.test for up in facts.scopes.ancestors(call) if isinstance(up, (ast.If, ast.IfExp))]
    return any(isinstance(n, ast.Attribute) and n.attr == "training" for test in tests for n in walk(test))


def reached_calls(facts: Facts, body: list[ast.stmt], seen: set[str]) -> Iterator[ast.Call]:
    """The calls of a block and of the file's own functions and methods that it calls, once each."""
    functions = {f.name: f for f in facts.tree.body if isinstance(f, ast.FunctionDef)}
    for s in body:
        for n in walk(s, ast.Call):
            yield n
            name = n.func.id if isinstance(n.func, ast.Name) else getattr(n.func, "attr", "")
            if name in seen or facts.names.resolve(n.func) is not None:
                continue
            seen.add(name)
            if isinstance(n.func, ast.Attribute):
                called = methods_of(facts, name)
            else:
                called = [functions[name]] if name in functions else _of_object(facts, n.func)
            for f in called:
                yield from reached_calls(facts, f.body, seen)


def _of_object(facts: Facts, called: ast.expr) -> list[ast.FunctionDef]:
    """What a call of an object of a class of this file runs: of every class, where nothing shows which it is."""
    scope = facts.scopes.scope_of(called).lookup(called.id) if isinstance(called, ast.Name) else None
    values = values_of(facts, called.id, scope) if isinstance(called, ast.Name) and scope is not None else []
    made = [ast.unparse(v.func) for v in values if isinstance(v, ast.Call)]
    known = bool(made) and len(made) == len(values)
    methods = methods_of(facts, "__call__")
    return [m for m in methods if not known or getattr(facts.scopes.parents.get(m), "name", "") in made]

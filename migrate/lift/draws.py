"""Random numbers that a script draws for its batches: what several processes draw otherwise than one is told of."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.script import Facts
from ..report import Note
from .holders import methods_of
from .loaders import values_of
from .recipe import DataPass

CODE = "PTM706"
LOADER = "torch.utils.data.DataLoader"
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
TRANSFORMS = ("torchvision.transforms.", "torchvision.transforms.v2.")
AUGMENTS = {"ColorJitter", "AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix", "ElasticTransform"}
BY_VALUE = {"torch.poisson", "torch.binomial"}  # how much they draw depends on what they are given
BY_COUNT = {"shuffle", "permutation", "permuted", "choices", "sample", "multivariate_normal", "dirichlet"}
ONE_BY_ONE = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.For, ast.While)
NOT_IN_USE = ("__init__", "reset", "init", "sample", "generate")  # methods that an evaluation's pass does not run


def drawn(facts: Facts, train: DataPass) -> list[Note]:
    """A note for each call whose numbers are other ones on several processes, with the global batch kept: what the step
    draws in another way than for the batch at once, and what data sets draw in a loader's workers.
    """
    notes = []
    for call in dict.fromkeys(_calls(facts, train.body, set())):
        if draws(facts, call) and not _whole(facts, call, train):
            says = "draws for this process's part of the batch: on several processes other numbers than one draws"
            notes.append(_note(facts, call, says))
    return [*notes, *_in_workers(facts)] if _with_workers(facts) else notes


def drawn_for_others(facts: Facts) -> list[Note]:
    """Likewise what the data sets of a file draw that a lifted script imports, where no loader of it shows workers."""
    has_loader = any(facts.names.resolve(c.func) == LOADER for c in facts.walk(ast.Call))
    return [] if has_loader and not _with_workers(facts) else list(_in_workers(facts))


def _in_workers(facts: Facts) -> Iterator[Note]:
    items = [f for f in facts.walk(ast.FunctionDef) if f.name == "__getitem__"]
    calls = [call for call in _calls(facts, list(items), set()) if draws(facts, call)]
    calls += [call for call in facts.walk(ast.Call) if _augments(facts, call)]
    for call in dict.fromkeys(calls):
        says = "draws in a loader's workers: on several processes other numbers than in one; without workers the same"
        yield _note(facts, call, says)


def draws_in_evaluation(facts: Facts, evaluate: DataPass) -> ast.Call | None:
    """A call that draws random numbers for what is evaluated: in the pass, or in a module of this file.

    What a module draws in training alone stands under `self.training`.
    """
    bodies: list[ast.stmt] = list(evaluate.body)
    for c in facts.classes.modules:
        bodies += [f for name, f in facts.classes.methods(c).items() if not name.startswith(NOT_IN_USE)]
    found = (call for call in _calls(facts, bodies, set()) if draws(facts, call))
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
    if not full.startswith(MODULES):
        return full not in BY_VALUE
    name = full.rsplit(".", 1)[-1]
    if name in BY_COUNT or (name == "choice" and len(call.args) + len(call.keywords) > 1):
        return False
    if full.startswith("numpy") and (call.args or call.keywords):
        return isinstance(call.func, ast.Attribute)  # a name of its own is not seen at work
    around = itertools.takewhile(lambda up: up is not train.loop, facts.scopes.ancestors(call))
    return not any(isinstance(up, ONE_BY_ONE) for up in around)


def _in_training(facts: Facts, call: ast.Call) -> bool:
    tests = [up.test for up in facts.scopes.ancestors(call) if isinstance(up, (ast.If, ast.IfExp))]
    return any(isinstance(n, ast.Attribute) and n.attr == "training" for test in tests for n in walk(test))


def _augments(facts: Facts, call: ast.Call) -> bool:
    """Is it one of torchvision's transforms that draw?"""
    full = facts.names.resolve(call.func) or ""
    name = full.rsplit(".", 1)[-1]
    return full.startswith(TRANSFORMS) and (name.startswith("Random") or name in AUGMENTS)


def _with_workers(facts: Facts) -> bool:
    """May a loader of this file have workers?"""
    for call in facts.walk(ast.Call):
        if facts.names.resolve(call.func) != LOADER:
            continue
        workers = next((k.value for k in call.keywords if k.arg == "num_workers"), None)
        opened = any(k.arg is None for k in call.keywords) or len(call.args) > 5
        if opened or not (workers is None or (isinstance(workers, ast.Constant) and workers.value == 0)):
            return True
    return False


def _calls(facts: Facts, body: list[ast.stmt], seen: set[str]) -> Iterator[ast.Call]:
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
                yield from _calls(facts, f.body, seen)


def _of_object(facts: Facts, called: ast.expr) -> list[ast.FunctionDef]:
    """What a call of an object of a class of this file runs: of every class, where nothing shows which it is."""
    scope = facts.scopes.scope_of(called).lookup(called.id) if isinstance(called, ast.Name) else None
    values = values_of(facts, called.id, scope) if isinstance(called, ast.Name) and scope is not None else []
    made = [ast.unparse(v.func) for v in values if isinstance(v, ast.Call)]
    known = bool(made) and len(made) == len(values)
    methods = methods_of(facts, "__call__")
    return [m for m in methods if not known or getattr(facts.scopes.parents.get(m), "name", "") in made]

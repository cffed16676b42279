"""A step that steers the training by a value of its batch: `g["lr"] = 0.1 * loss.item()`, `p.grad.mul_(loss.item())`.

Ranks with shares of the batch would each go their own way, and their weights part.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument
from ..facts.batch_tests import asks_values
from ..facts.nodes import walk
from ..facts.script import Facts
from .nodes import local_function
from .optimizers import is_plateau
from .reads import stored
from .recipe import CannotLift, DataPass
from .shown import of_the_batch, spread

GROUPS, WEIGHTS, OF_A_WEIGHT = "param_groups", ("parameters", "named_parameters"), ("grad", "data")
DEPTH = 2  # of functions that call functions


def steered(facts: Facts, train: DataPass) -> CannotLift | None:
    """Why the step needs whole batches: the first that sets an option or a weight by what the batch gives."""
    given = {n.id for n in walk(train.target, ast.Name)}
    names = [n for s in train.body for n in walk(s, ast.Name)]
    called = {c.func.id for s in train.body for c in walk(s, ast.Call) if isinstance(c.func, ast.Name)}
    called -= {n.id for n in names if not isinstance(n.ctx, ast.Load)}
    part = of_the_batch(train, called, {})  # `net.seen += len(x)` makes no value of the network
    node = next(_steering(facts, train.body, part, given), None)
    return None if node is None else CannotLift(node, f"`{facts.short(node)}` goes by the values of the batch")


def _steering(facts: Facts, body: list[ast.stmt], part: set[str], given: set[str], depth: int = 0) -> Iterator[ast.AST]:
    """`given`: the names that the batch, or what a caller gives of it, has before the first statement."""
    groups, weights = _gone_through(facts, body, (GROUPS,)), _gone_through(facts, body, WEIGHTS)
    samples = (part & (given | stored(body))) - weights
    for n in (n for s in body for n in walk(s)):
        if isinstance(n, (ast.Assign, ast.AugAssign)) and asks_values(n.value, part):
            targets = n.targets if isinstance(n, ast.Assign) else [n.target]
            if any(_is_option(t, groups) or _is_of_a_weight(t, weights, samples) for t in targets):
                yield n
        elif isinstance(n, ast.Call) and any(asks_values(a, part) for a in (*n.args, *(k.value for k in n.keywords))):
            if isinstance(n.func, ast.Attribute):
                if _steps_by(facts, n, n.func) or _changes_a_weight(n.func, weights, samples):
                    yield n
            elif depth < DEPTH and any(_inside(facts, n, part, depth)):
                yield n


def _inside(facts: Facts, call: ast.Call, part: set[str], depth: int) -> Iterator[ast.AST]:
    """The same in a function of the script's, of the parameters that are given such a value."""
    f = local_function(facts, call.func) if isinstance(call.func, ast.Name) else None
    if not isinstance(f, ast.FunctionDef) or not any(word in facts.text.get(f) for word in (GROUPS, *OF_A_WEIGHT)):
        return
    given = ((a.arg, argument(call, f, a.arg)) for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs))
    names = {name for name, value in given if value is not None and asks_values(value, part)}
    yield from _steering(facts, f.body, spread(f.body, names, set(), {}), names, depth + 1)


def _gone_through(facts: Facts, body: list[ast.stmt], attributes: tuple[str, ...]) -> set[str]:
    """The names that loops over such an attribute give its parts: `p` of `for p in net.parameters()`, or of a list."""
    loops = (n for s in body for n in walk(s, ast.For))
    return {t.id for n in loops if _is_of(facts, n.iter, attributes) for t in walk(n.target, ast.Name)}


def _is_of(facts: Facts, over: ast.expr, attributes: tuple[str, ...]) -> bool:
    if _has(over, attributes):
        return True
    homes = [(n, facts.scopes.scope_of(n).lookup(n.id)) for n in walk(over, ast.Name)]
    given = (v for n, home in homes if home is not None for v in facts.devices.assigned(n.id, home) or ())
    return any(_has(v, attributes) for v in given)


def _has(node: ast.AST, names: tuple[str, ...]) -> bool:
    return any(n.attr in names for n in walk(node, ast.Attribute))


def _is_option(target: ast.expr, groups: set[str]) -> bool:
    """`g["lr"]` of `for g in optimizer.param_groups`, `optimizer.param_groups[0]["lr"]`."""
    if not isinstance(target, ast.Subscript):
        return False
    return _has(target, (GROUPS,)) or (isinstance(target.value, ast.Name) and target.value.id in groups)


def _is_of_a_weight(target: ast.expr, weights: set[str], samples: set[str]) -> bool:
    """`p.grad`, `p.data` and `net.weight.data`, or a part of it; not those of the samples."""
    while isinstance(target, ast.Subscript):
        target = target.value
    if not isinstance(target, ast.Attribute) or target.attr not in OF_A_WEIGHT or asks_values(target.value, samples):
        return False
    of = target.value
    return isinstance(of, ast.Attribute) or (isinstance(of, ast.Name) and of.id in weights)


def _changes_a_weight(method: ast.Attribute, weights: set[str], samples: set[str]) -> bool:
    """`p.grad.mul_(x)`, `p.data.add_(x)`."""
    in_place = method.attr.endswith("_") and not method.attr.startswith("_")
    return in_place and _is_of_a_weight(method.value, weights, samples)


def _steps_by(facts: Facts, call: ast.Call, method: ast.Attribute) -> bool:
    """`scheduler.step(loss)` of a schedule on a metric."""
    named = method.attr == "step" and isinstance(method.value, ast.Name)
    return named and is_plateau(facts, call, method.value.id)  # type: ignore[attr-defined]

"""Values that a training step computes anew of themselves and of what it shows: a running mean, the best loss so far.

    ema = 0.9 * ema + 0.1 * loss.item()                      if loss.item() < best:
    mean += (loss.item() - mean) / (step + 1)                    best = loss.item()

With the loss of the whole batch in them they are the same on every rank, whose batches may be shares then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..facts.nodes import walk
from ..facts.script import Facts
from .counters import ONE_RANK, all_ranks_pass
from .loss import loss_reduction
from .nodes import is_call_of, local_function
from .recipe import CannotLift, Recipe
from .same_numbers import Store, given_by, is_number, running_names
from .shown import Shown, reads_part, shows_number
from .zeros import zeroed

CUTS = ("int", "round", "floor", "ceil", "trunc", "long", "short")
DEPTH = 4  # of names that are given names


def find_running(facts: Facts, recipe: Recipe, carried: Iterable[str]) -> set[str]:
    """Those of the names that a step carries which are such values; from now on they are the same numbers."""
    train, found = recipe.train, running_names(facts, recipe.train)
    try:
        reduction = loss_reduction(facts, recipe)
    except CannotLift:
        return found
    stores: dict[str, list[Store | None]] = {name: [] for name in carried}
    for n in (n for s in train.body for n in walk(s, ast.Name) if n.id in stores and isinstance(n.ctx, ast.Store)):
        stores[n.id].append(given_by(facts, n))
    shown = Shown(facts, recipe, reduction)
    found.update(name for name, by in stores.items() if not all(s and _is_of_a_sum(shown, s) for s in by))
    while True:
        shown = Shown(facts, recipe, reduction)
        others = {name for name in found if not all(s and _is_running(shown, s) for s in stores[name])}
        if not others:
            return found
        found -= others


def brought_for(shown: Shown, s: ast.AST) -> dict[ast.AST, str]:
    """What is brought together for a statement that gives such a name its value: in it, and in what decides on it."""
    target = s.targets[0] if isinstance(s, ast.Assign) else getattr(s, "target", None)
    if not isinstance(s, Store) or not isinstance(target, ast.Name):
        return {}
    if target.id not in running_names(shown.facts, shown.recipe.train):
        return {}
    return {k: kind for e in _asked(shown, s) for k, kind in shown.of_value(e).items()}


def _is_of_a_sum(shown: Shown, s: Store) -> bool:
    """`total += loss.item()` and `total = 0`, `total *= 0`, but not `since += 1` where the loss decides on it."""
    if isinstance(s, ast.Assign):
        return isinstance(s.value, ast.Constant)
    if zeroed(shown.facts, s) is not None:
        return True
    own = {n.id for n in walk(s.target, ast.Name)}
    adds = isinstance(s.op, (ast.Add, ast.Sub)) and not any(n.id in own for n in walk(s.value, ast.Name))
    return adds and (shown.sums.of_the_samples(s.value) or len(list(_asked(shown, s))) == 1)


def _is_running(shown: Shown, s: Store) -> bool:
    facts, train = shown.facts, shown.recipe.train
    if isinstance(s, ast.Assign) and not isinstance(s.targets[0], ast.Name):
        return False
    asked = list(_asked(shown, s))
    last = facts.scopes.parents[asked[-1]]  # the statement, or the `if` around it
    passed = all_ranks_pass(facts, train, last if isinstance(last, ast.If) else s.value, set(), assigned=True)
    return passed and all(_is_same(shown, e) for e in asked)


def _asked(shown: Shown, s: Store) -> Iterator[ast.expr]:
    """The value, and the condition around it where that asks for more than what is the same on every rank."""
    yield s.value
    up = shown.facts.scopes.parents.get(s)
    if isinstance(up, ast.If) and not shown.sums.alike(up.test) and not ONE_RANK.search(ast.unparse(up.test)):
        yield up.test


def _is_same(shown: Shown, e: ast.expr) -> bool:
    """Whether an expression is arithmetic of the same numbers and of means and sums that are brought together."""
    parts = shown.of_value(e)
    values = [k for k in parts if isinstance(k, ast.expr)]
    if not all(shows_number(shown.sums, k) for k in values) or any(_cuts(shown, k) for k in values):
        return False
    inside = {n for k in parts for n in walk(k)}
    if not all(_is_known(shown.facts, n) for n in walk(e) if n not in inside):
        return False
    return reads_part(e, shown.sums.own, parts) is None and is_number(shown.facts, e, shown.sums.own, parts)


def _is_known(facts: Facts, n: ast.AST) -> bool:
    """No attribute, which a forward may set, but of the script's options; no function of the script's own."""
    if isinstance(n, ast.Call):
        return not (isinstance(n.func, ast.Name) and local_function(facts, n.func) is not None)
    if not isinstance(n, ast.Attribute) or facts.names.resolve(n) is not None:
        return True
    home = facts.scopes.scope_of(n.value).lookup(n.value.id) if isinstance(n.value, ast.Name) else None
    made = (facts.devices.assigned(n.value.id, home) or []) if home is not None else []  # type: ignore[attr-defined]
    return bool(made) and all(is_call_of(m, "parse_args") for m in made) and not facts.stores_of(n.attr)


def _cuts(shown: Shown, e: ast.expr, deep: int = 0) -> bool:
    """Whether something is cut off: `int(100 * accuracy)` of a share is no part of that of the whole batch."""
    for n in walk(e):
        last = getattr(n.func, "attr", getattr(n.func, "id", "")) if isinstance(n, ast.Call) else ""
        if last in CUTS or (isinstance(n, ast.BinOp) and isinstance(n.op, (ast.FloorDiv, ast.Mod))):
            return True
        made = shown.sums.made(n) if isinstance(n, ast.Name) and deep < DEPTH else None
        if made is not None and _cuts(shown, made, deep + 1):
            return True
    return False

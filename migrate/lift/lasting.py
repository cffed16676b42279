"""Values of the last batch that are read when the batches are over: `print(epoch, loss.item())` below the batch loop.

A process has the value of its share. A mean or a sum over the samples is brought together where it is read; of anything
else (predictions, images) a process shows its own part, which is told. Of an evaluation, whose batches are dealt out,
it has the number of the last batch that it was given: the last of all is the largest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..facts.filled_lists import ADDS_ONE
from ..facts.nodes import walk
from ..facts.script import Facts
from .chunks import Binder, Chunk, Variable, Variables
from .counters import Counters
from .reads import exposed, stored, sure_stores
from .recipe import CannotLift, DataPass, Recipe
from .same_numbers import running_names
from .sums import Sums

MEAN, SUM = "batch_mean", "batch_sum"  # of Module, over what the ranks have of the last batch


@dataclass
class Lasting:
    """`brought`: the Module's method that brings a value together. `parts`: names that hold a part, and where.

    `number`: that of an evaluation's last batch, where something reads it.
    """

    brought: dict[Variable, str] = field(default_factory=dict)
    number: Variable | None = None
    parts: dict[str, ast.AST] = field(default_factory=dict)


def lasting(
    facts: Facts,
    recipe: Recipe,
    binder: Binder,
    chunks: list[Chunk],
    variables: Variables,
    counters: Counters,
    reduction: str,
) -> Lasting:
    """What the training step leaves to the statements after it; nothing where every process has the whole batch."""
    found = Lasting()
    train = recipe.train
    read = _read_number(recipe, binder, chunks, variables)
    if read is not None and facts.ours:
        found.number = binder.variable(read)  # type: ignore[assignment]
    elif read is not None:
        found.parts[read.id] = read
    if recipe.whole is not None:
        return found
    sums = Sums(facts, recipe, train, reduction)
    others = [c for c in chunks if c.statements is not train.body]
    counted = {v for v, _ in counters}
    for name in sorted(stored(train.body) | {n.id for n in walk(train.target, ast.Name)}):
        node = _stored_at(train, name)
        var = binder.variable(node) if node is not None else None
        if node is None or not isinstance(var, Variable) or var not in variables.attributes or var in counted:
            continue
        names = [n for c in others for s in c.statements for n in walk(s, ast.Name)]
        names += list(walk(train.returns, ast.Name)) if train.returns is not None else []
        own = [n for n in names if binder.variable(n) == var]
        reads = [n for n in own if isinstance(n.ctx, ast.Load)]
        kept = var.owner == "" and var.name in variables.results
        if name == train.index or not (reads or kept) or not _of_the_samples(sums, train, name):
            continue
        if _of_totals(sums, train, name, {v for v, c in counters if c.reduced and c.passing is train}, binder):
            continue
        kind = sums.kind(ast.copy_location(ast.Name(name, ast.Load()), node))
        if len(reads) < len(own):  # others give it another value: what is read may be that
            if not _given_anew(binder, var, train, chunks) and any(name in exposed(c.statements) for c in others):
                found.parts[name] = reads[0] if reads else node
        elif kind is None:
            found.parts[name] = reads[0] if reads else node
        else:
            found.brought[var] = MEAN if kind == "mean" else SUM
    return found


def _given_anew(binder: Binder, var: Variable, train: DataPass, chunks: list[Chunk]) -> bool:
    """Whether what comes right after the batches gives it another value first: `loss = total / len(loader)`."""
    hook = next(c.hook for c in chunks if c.statements is train.after)
    after = [s for c in chunks if c.hook == hook for s in c.statements]
    stores = [n for n in _within(after) if isinstance(n, ast.Name) and not _is_read(n) and binder.variable(n) == var]
    sure = sure_stores(after) or set()
    return any(n.id in sure and n.id not in exposed(after) for n in stores)


def left_by_evaluation(
    facts: Facts, recipe: Recipe, binder: Binder, chunks: list[Chunk], variables: Variables
) -> CannotLift | None:
    """Why every process needs all batches of an evaluation: what its last batch leaves is read when it is over, and
    one process alone has that batch; another may have none.
    """
    e = recipe.evaluate
    if e is None or recipe.whole_evaluation is not None:
        return None
    sums = Sums(facts, recipe, e, "mean")
    others = [c.statements for c in chunks if c.statements is not e.body]
    totals = {n.target.id for n in _within(e.body) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
    names = stored(e.body) | {n.id for n in walk(e.target, ast.Name)}
    for name in sorted(names - totals - {e.index}):
        node = _stored_at(e, name)
        var = binder.variable(node) if node is not None else None
        if not isinstance(var, Variable) or var not in variables.attributes or not _of_the_samples(sums, e, name):
            continue
        returned = _reads_of(binder, var, [e.returns] if e.returns is not None else [])
        if returned or any(name in exposed(statements) for statements in others):
            at = [*returned, *(n for statements in others for n in _reads_of(binder, var, statements))]
            return CannotLift(
                at[0] if at else node, f"`{name}` is read when they are over as the last of them leaves it"
            )
    return None


def _within(statements: Sequence[ast.AST]) -> Iterator[ast.AST]:
    return (n for s in statements for n in walk(s))


def _reads_of(binder: Binder, var: Variable, statements: Sequence[ast.AST]) -> list[ast.Name]:
    names = (n for n in _within(statements) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return [n for n in names if binder.variable(n) == var]


def _read_number(recipe: Recipe, binder: Binder, chunks: list[Chunk], variables: Variables) -> ast.Name | None:
    """Where the number of an evaluation's batch is read outside of its step."""
    e = recipe.evaluate
    if e is None or e.index is None or recipe.whole_evaluation is not None:
        return None
    bound = next((n for n in walk(e.loop.target, ast.Name) if n.id == e.index), None)
    var = binder.variable(bound) if bound is not None else None
    if bound is None or not isinstance(var, Variable) or var not in variables.attributes:
        return None
    others: list[ast.AST] = [s for c in chunks if c.statements is not e.body for s in c.statements]
    others += [e.returns] if e.returns is not None else []
    read = (n for s in others for n in walk(s) if _is_read(n) and binder.variable(n) == var)  # type: ignore[arg-type]
    kept = bound if var.owner == "" and var.name in variables.results else None
    return next(read, kept)  # type: ignore[return-value]


def _stored_at(train: DataPass, name: str) -> ast.Name | None:
    nodes = (n for s in (train.target, *train.body) for n in walk(s, ast.Name))
    return next((n for n in nodes if n.id == name and not isinstance(n.ctx, ast.Load)), None)


def _is_read(n: ast.AST) -> bool:
    return isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)


def _of_the_samples(sums: Sums, train: DataPass, name: str) -> bool:
    """Whether the value comes from the batch: the loop's own names, and what is computed from them."""
    own, running = {n.id for n in walk(train.target, ast.Name)} - {train.index}, running_names(sums.facts, train)
    filled = list(_filling(train))
    while True:
        left = sums.given.keys() - own - running
        more = {n for n in left if any(_reads(s, own) for s in sums.given[n])}
        more |= {n for n, c in filled if n in left and any(_reads(a, own) for a in c.args)}
        more |= sums.refilled(own) - own - running
        if not more:
            return name in own
        own |= more


def _of_totals(
    sums: Sums, train: DataPass, name: str, totals: set[Variable], binder: Binder, above: frozenset[str] = frozenset()
) -> bool:
    """`accuracy = right / seen`: of sums over the ranks, and nothing else of the batch; a text with such a number."""
    given = sums.given.get(name, [])
    read = [n for s in given if isinstance(s, ast.Assign) for n in walk(s.value, ast.Name)]
    others = {n.id for n in read if binder.variable(n) not in totals}
    alone = bool(given) and all(isinstance(s, ast.Assign) and len(s.targets) == 1 for s in given)
    if not alone or name in above or any(n == name for n, _ in _filling(train)):
        return False
    samples = (n for n in others if _of_the_samples(sums, train, n))
    return all(_of_totals(sums, train, n, totals, binder, above | {name}) for n in samples)


def _filling(train: DataPass) -> Iterator[tuple[str, ast.Call]]:
    """The names of lists that a step fills, each with the call: `terms.append(criterion(out, y))`."""
    for c in (n for n in _within(train.body) if isinstance(n, ast.Call)):
        if isinstance(c.func, ast.Attribute) and c.func.attr in ADDS_ONE and isinstance(c.func.value, ast.Name):
            yield c.func.value.id, c


def _reads(s: ast.AST, names: set[str]) -> bool:
    return any(_is_read(n) and n.id in names for n in walk(s))  # type: ignore[attr-defined]

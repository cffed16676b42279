"""What a script counts by hand over its batches, and how ranks bring it together so that it is exact.

In evaluation a rank takes whole batches, so whatever is added for a batch can be added over ranks. In training every
rank holds a share of each batch: a mean is weighted by the share, a sum over samples is added, a count of batches is
the same on every rank.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.spelled import spelled
from .as_often import once_a_sample
from .chunks import Binder, Chunk, Variable, Variables
from .collected import filled_by, given_by, gone_through, handed_to, is_bar, is_global
from .elements import fills_of, weighed_fills
from .in_order import Fills, is_list
from .networks import is_network
from .nodes import walk_here
from .printed import check_sums_so_far, printed
from .reads import stored
from .recipe import CannotLift, DataPass, Recipe
from .same_numbers import running_names, same_numbers
from .sums import Sums
from .totals import Totals, Where
from .touched import asks_touched, touched
from .zeros import changed, is_read, zeroed

# a test for one process, by its words
ONE_RANK = re.compile(r"rank|RANK|[Mm]aster|is_main|primary|global_zero|environ")
PER_SAMPLE = {"sum", "numel", "nelement", "size", "__len__", "count_nonzero"}


@dataclass(frozen=True)
class Counter:
    passing: DataPass
    reduced: bool  # added over ranks before it is read outside of the step
    by_share: bool  # what is added is a mean over the batch: weighted by this rank's share
    weighed: frozenset[ast.AST] = frozenset()  # of sums in elements, the values that are such means
    where: Where = Where.LOCAL  # it is brought together, if it is
    shown: bool = field(default=True, compare=False)  # that it is such a mean, or a sum over samples


Counters = list[tuple[Variable, Counter]]  # a variable may be one of both passes


def counter_of(counters: Counters, var: object, passing: DataPass | None) -> Counter | None:
    return next((c for v, c in counters if v == var and c.passing is passing), None)


def counters_of(
    facts: Facts, recipe: Recipe, binder: Binder, chunks: list[Chunk], variables: Variables, reduction: str
) -> Counters:
    """The counters of divided passes. What cannot be brought together makes its pass one over whole batches."""
    found: Counters = []
    for chunk in chunks:
        if not chunk.hook.endswith("_step") or chunk.passing is None:
            continue
        training = chunk.passing is recipe.train
        if recipe.whole is not None or (not training and recipe.whole_evaluation is not None):
            continue
        try:
            own = _of_pass(facts, recipe, binder, chunk, variables, training, reduction)
            if training:
                own.update(_of_elements(facts, recipe, binder, chunks, chunk, variables, reduction))
                _check_read_in_step(facts, binder, chunk, own)
                _check_begun_in_step(facts, binder, chunk, own)
            totals = Totals(facts, recipe, binder, chunks, variables, chunk.passing)
            found += [
                (v, replace(c, where=totals.where(v, c.passing.loop)) if c.reduced else c) for v, c in own.items()
            ]
        except CannotLift as why:
            if training:
                recipe.whole = why.alone
                found.clear()
                recipe.taken_for.clear()
            else:
                recipe.whole_evaluation, recipe.in_order = why.alone, set()
    return found


def _of_pass(
    facts: Facts,
    recipe: Recipe,
    binder: Binder,
    chunk: Chunk,
    variables: Variables,
    training: bool,
    reduction: str,
) -> dict[Variable, Counter]:
    found: dict[Variable, Counter] = {}
    assert chunk.passing is not None
    sums = Sums(facts, recipe, chunk.passing, reduction) if training else None
    running = running_names(facts, chunk.passing) if training else set()
    if not training and facts.ours:
        recipe.in_order = Fills(facts, binder, chunk, variables).in_order() | printed(facts, chunk.passing)
    for s in chunk.statements:
        for n in walk_here(s):
            if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and n not in recipe.in_order:
                if n.target.id in running:
                    continue
                var = binder.variable(n.target)
                if isinstance(var, Variable) and var in variables.attributes and zeroed(facts, n) is None:
                    if sums is not None and _begins_in_step(sums, n.target.id):
                        continue
                    counter = _counter(facts, chunk.passing, n, sums)
                    if var in found and found[var] != counter:
                        raise CannotLift(n, f"`{n.target.id}` adds up different kinds of values")
                    if counter.by_share and s is not n:
                        raise CannotLift(n, f"`{n.target.id}` is added to under a condition")
                    if training and s is not n and once_a_sample(facts, chunk.passing, n):
                        counter = replace(counter, reduced=True)
                    if not counter.shown:
                        recipe.taken_for[n] = "mean" if counter.by_share else "sum"
                    found[var] = counter
    if not training:
        _check_collections(facts, binder, chunk, variables, found, recipe.in_order)
        check_sums_so_far(facts, chunk.passing, list(_reads_in_step(facts, binder, chunk, found)))
    return found


def _of_elements(
    facts: Facts,
    recipe: Recipe,
    binder: Binder,
    chunks: list[Chunk],
    chunk: Chunk,
    variables: Variables,
    reduction: str,
) -> dict[Variable, Counter]:
    found: dict[Variable, Counter] = {}
    assert chunk.passing is not None
    for var, fills in fills_of(chunk, binder, variables).items():
        weighed = weighed_fills(facts, recipe, binder, chunks, chunk, fills, reduction)
        if weighed is not None:
            found[var] = Counter(chunk.passing, True, False, weighed)
    return found


def _check_read_in_step(facts: Facts, binder: Binder, chunk: Chunk, counters: dict[Variable, Counter]) -> None:
    """Raise for a counter that the step reads where not every rank comes by to bring it together."""
    passing = chunk.passing
    assert passing is not None
    for n, _ in _reads_in_step(facts, binder, chunk, counters):
        if not all_ranks_pass(facts, passing, n, alike(list(counters.items())), assigned=True):
            raise CannotLift(n, f"`{n.id}` is read in the step before all of it is there")
        if changed(facts, n):
            raise CannotLift(n, f"`{n.id}` is changed in the step by more than what is added to it")


def _reads_in_step(
    facts: Facts, binder: Binder, chunk: Chunk, counters: dict[Variable, Counter]
) -> Iterator[tuple[ast.Name, Variable]]:
    """Where the step reads what the ranks bring together of it."""
    for n in (n for s in chunk.statements for n in walk(s, ast.Name)):
        counter = counters.get(var) if isinstance(var := binder.variable(n), Variable) else None
        ours = counter is not None and counter.reduced and counter.passing is chunk.passing
        if isinstance(var, Variable) and ours and is_counter_read(facts, n):
            yield n, var


def _check_begun_in_step(facts: Facts, binder: Binder, chunk: Chunk, counters: dict[Variable, Counter]) -> None:
    """Raise for a counter that a step begins again where not every rank comes by."""
    assert chunk.passing is not None
    for n in (n for s in chunk.statements for n in walk(s, ast.Name) if not is_read(facts, n)):
        added = isinstance(up := facts.scopes.parents.get(n), ast.AugAssign) and zeroed(facts, up) is None
        if added or not isinstance(var := binder.variable(n), Variable) or var not in counters:
            continue
        if not all_ranks_pass(facts, chunk.passing, n, alike(list(counters.items())), assigned=True):
            raise CannotLift(n, f"`{n.id}` begins again where the step asks for values of its batch")


def is_counter_read(facts: Facts, n: ast.Name) -> bool:
    """Whether a name is read for its value, and not for an element that is added to: the x of `x[0] += 1`."""
    if not is_read(facts, n):
        return False
    at: ast.AST = n
    while isinstance(up := facts.scopes.parents.get(at), ast.Subscript) and up.value is at:
        at = up
    if at is not n and isinstance(getattr(at, "ctx", None), ast.Store):
        return False
    if not isinstance(up, ast.BinOp) or up.left is not at:
        return True
    around = facts.scopes.parents.get(up)  # the left x[0] of `x[0] = x[0] + 1`
    same = isinstance(around, ast.Assign) and around.value is up
    return not (same and ast.unparse(around.targets[0]) == ast.unparse(at))  # type: ignore[union-attr]


def alike(counters: Counters) -> set[str]:
    """Names of the counters that every rank counts alike."""
    return {v.name for v, c in counters if not c.reduced}


def all_ranks_pass(facts: Facts, passing: DataPass, n: ast.AST, same: set[str], assigned: bool = False) -> bool:
    """Whether the conditions around a node ask only for what is the same on every rank."""
    own = stored(passing.body) | {x.id for x in walk(passing.target, ast.Name)}
    own -= same | same_numbers(facts, passing)
    objects = touched(facts, passing)
    kinds: tuple[type[ast.AST], ...] = (ast.expr, ast.Expr, ast.keyword, ast.FormattedValue)
    kinds += (ast.Assign, ast.AugAssign) if assigned else ()
    for up in facts.scopes.ancestors(n):
        if up is passing.loop:
            return True
        if isinstance(up, ast.If):
            own_asked = any(x.id in own for x in walk(up.test, ast.Name)) or asks_touched(up.test, objects)
            if own_asked or ONE_RANK.search(spelled(up.test)):
                return False
        elif not isinstance(up, kinds) or isinstance(up, (ast.Lambda, ast.IfExp, ast.BoolOp)):
            return False
    return False


def _counter(facts: Facts, passing: DataPass, n: ast.AugAssign, sums: Sums | None) -> Counter:
    """`sums`: what the values of a training step are; None in an evaluation."""
    if not isinstance(n.op, (ast.Add, ast.Sub)):
        raise CannotLift(n, f"`{facts.short(n)}` is no sum")
    if is_list(n.value):
        raise CannotLift(n, f"`{facts.short(n)}` collects values, and is no sum")
    if sums is None:
        return Counter(passing, True, False)
    of_the_step = stored(passing.body) | {x.id for x in walk(passing.target, ast.Name)}
    of_the_step -= same_numbers(facts, passing)
    if not any(x.id in of_the_step for x in walk(n.value, ast.Name)):
        return Counter(passing, False, False)  # the same on every rank: a count of batches
    shown = sums.kind(n.value)
    if shown is not None:
        return Counter(passing, True, shown == "mean")
    if sums.multiplies(n.value):
        raise CannotLift(n, f"`{facts.short(n)}` multiplies two sums over the batch")
    if sums.bends(n.value):
        raise CannotLift(n, f"`{facts.short(n)}` is for a share of the batch not what it is for the whole")
    if sums.means.is_of_places(n.value):
        raise CannotLift(n, f"`{facts.short(n)}` adds up samples by their place in the batch")
    if any(_per_sample(x) for x in walk(n.value)):
        return Counter(passing, True, False, shown=False)
    return Counter(passing, True, sums.reduction == "mean", shown=_is_time(facts, sums, n.value))


def _is_time(facts: Facts, sums: Sums, value: ast.expr) -> bool:
    """`time.time() - start`, of a start that clocks alone give: each process has its own, and none is to be told of."""
    asks = list(walk(value, ast.Call))
    read = [n for n in walk(value, ast.Name) if not any(n in walk(c.func) for c in asks)]
    made = [s.value for n in read for s in sums.given.get(n.id, []) if isinstance(s, ast.Assign)]
    known = all(isinstance(s, ast.Assign) for n in read for s in sums.given.get(n.id, []))
    clocks = asks + [m for v in made for m in walk(v, ast.Call)]
    plain = all(isinstance(v, ast.Call) for v in made)
    return (
        known
        and plain
        and bool(clocks)
        and all((facts.names.resolve(c.func) or "").startswith("time.") for c in clocks)
    )


def _begins_in_step(sums: Sums, name: str) -> bool:
    """Whether each step gives the name a value of its own batch, which is added to: `loss = ce(out, y); loss += l1`."""
    first = next(iter(sums.given.get(name, [])), None)
    if not isinstance(first, ast.Assign) or any(x.id == name for x in walk(first.value, ast.Name)):
        return False
    return name in sums.losses or sums.of_the_samples(first.value)


def _per_sample(n: ast.AST) -> bool:
    if isinstance(n, ast.Call):
        if isinstance(n.func, ast.Name) and n.func.id in ("len", "sum"):
            return True
        return isinstance(n.func, ast.Attribute) and n.func.attr in PER_SAMPLE
    return isinstance(n, ast.Attribute) and n.attr in ("shape", "batch_size")


def _check_collections(
    facts: Facts,
    binder: Binder,
    chunk: Chunk,
    variables: Variables,
    counters: dict[Variable, Counter],
    in_order: set[ast.stmt],
) -> None:
    """Raise for a list or meter filled over the evaluation and read whole afterwards: a rank has its part only.
    `in_order`: the statements whose fillings every rank makes.
    """
    assert chunk.passing is not None
    after = {n.id for s in chunk.passing.after for n in walk(s, ast.Name)}
    if chunk.passing.returns is not None:
        after |= {n.id for n in walk(chunk.passing.returns, ast.Name)}
    made_before = {n.id for s in chunk.passing.before for n in walk(s, ast.Name) if not isinstance(n.ctx, ast.Load)}
    own = stored(chunk.passing.body) | {n.id for n in walk(chunk.passing.target, ast.Name)}
    within = own | gone_through(chunk.statements, own) | {chunk.passing.index or ""}
    made = {n for s in in_order for n in (s, getattr(s, "value", s), getattr(s, "target", s))}
    for s in chunk.statements:
        for n in walk_here(s):
            if n in made:
                continue
            name = None
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
                name = _root(n.func.value)
            elif isinstance(n, (ast.Subscript, ast.Attribute)) and isinstance(n.ctx, ast.Store):
                name = _root(n.value)
            elif isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
                var = binder.variable(n)
                name = n if var in variables.attributes and var not in counters else None
            if name is not None and name.id in made_before and name.id in after:
                raise CannotLift(n, f"`{name.id}` collects values over the evaluation and is read whole afterwards")
            filled = filled_by(n) or _handed_to(facts, n)
            if filled is None or filled.id in own or is_bar(facts, filled):
                continue
            if not (isinstance(binder.variable(filled), Variable) or is_global(facts, filled)):
                continue
            if _fills_its_part(n, within):
                raise CannotLift(n, f"`{filled.id}` collects values over the evaluation")


def _handed_to(facts: Facts, n: ast.AST) -> ast.Name | None:
    """What a call gives values to keep, that is no network: that has the batch for itself."""
    name = handed_to(facts, n)
    return None if name is None or is_network(facts, name.id) else name


def _fills_its_part(n: ast.AST, own: set[str]) -> bool:
    """Whether a filling makes of its thing what goes by the batches that a rank has: also where it only counts them."""
    if isinstance(n, ast.AugAssign):
        return True
    target = n.targets[0] if isinstance(n, ast.Assign) else n.func if isinstance(n, ast.Call) else n
    put_in = [*given_by(n), target]
    return any(x.id in own for e in put_in for x in walk(e, ast.Name))


def _root(node: ast.expr) -> ast.Name | None:
    """The x of `x["loss"]` and `x.losses`."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node if isinstance(node, ast.Name) else None

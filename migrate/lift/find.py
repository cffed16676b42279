"""Finding the recipe of a script: the one backward, the batch loop around it, the epoch loop around that.

Recognition only reads. Where the facts do not show that the lift is the same program it raises CannotLift with the line
that decided, and the loop is kept.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from ..facts.arguments import argument
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.spelled import spelled
from .added import check_added
from .backwards import training_backwards
from .fixed_sizes import fixed_size
from .gradient_hooks import changed_gradients
from .hopeless import outside
from .joined_batches import joined_batches
from .late_norms import late_norms
from .loaders import counts_with_bar, is_loader, is_progress, iterates_loader, values_of
from .manual import given_gradient, manual_optimization
from .mixed_batches import mixed_batches
from .mixes import mixes_samples
from .modes import evaluates_training
from .monitored import monitored
from .networks import check_networks
from .nodes import is_call_of, local_function
from .other_networks import network_on_cpu
from .padded import padded_batches
from .passes import evaluation, pass_in_place, pass_of_function
from .private import by_sample
from .recipe import CannotLift, DataPass, Optimization, Recipe
from .refilled import refilled
from .steered import steered
from .step import epoch_schedulers, idle_zeros, loose_tensors, optimization, whole_batches
from .texts import check_texts
from .unset import check_unset
from .written import writes_samples

COUNTS = ("range", "len", "int", "min", "max", "enumerate", "size", "count")
# what gives the same, made again, where it is given the same
STEADY = {f"torch.utils.data.{n}" for n in ("DataLoader", "TensorDataset", "Subset", "ConcatDataset")}
PLAIN_ITERABLES = {"range", "zip", "reversed", "sorted", "list", "iter", "itertools", "numpy", "random"}


@dataclass(frozen=True)
class Outline:
    """What every recipe of a script has in common."""

    backwards: list[ast.Call]
    epoch_loop: ast.For
    train: DataPass
    before: list[ast.stmt]  # statements of the epoch loop before the training pass
    rest: list[ast.stmt]  # and those after it
    epochs: tuple[str, ast.expr | None, ast.expr | None]


def outline(facts: Facts) -> Outline:
    """The loops of a script; CannotLift where they are no training loop over batches in one over epochs."""
    try:
        backwards = _backwards(facts)
        _overridden_modes(facts)
        epoch_loop, train, before, rest = _training(facts, _batch_loop(facts, backwards))
        return Outline(backwards, epoch_loop, train, before, rest, _epochs(facts, epoch_loop))
    except CannotLift as why:
        why.of_loops = True
        raise


def find(facts: Facts, loops: Outline, lifts_evaluation: bool = True, automatic: bool = True) -> Recipe:
    """The recipe of a script; CannotLift where there is none.

    Without `lifts_evaluation` the evaluation stays as it is; without `automatic` so does the order of the step.
    """
    backwards, epoch_loop, train = loops.backwards, loops.epoch_loop, replace(loops.train)
    before, rest = loops.before, loops.rest
    evaluate: DataPass | None = None
    between: list[ast.stmt] = rest
    after: list[ast.stmt] = []
    unlifted: CannotLift | None = None
    try:
        evaluate, between, after = _evaluation(facts, rest, epoch_loop, lifts_evaluation)
    except CannotLift as why:
        unlifted = why.alone
    if evaluate is None and unlifted is None and (loop := _evaluating(facts, rest)) is not None:
        unlifted = CannotLift(loop, "what it goes over is not shown to be a DataLoader")
    passes = [p.function for p in (train, evaluate) if p is not None and p.function is not None]
    gone = [f for f in passes if len(facts.devices.uses_of_function(f)) == 1]  # they may be defined in the loop
    before, between, after = ([s for s in block if s not in gone] for block in (before, between, after))
    if train.function is None:
        train.after, between = between, []
    check_networks(facts, train)
    check_unset(facts, train)
    check_added(facts, train, [*before, *rest])
    step = optimization(facts, train, backwards, automatic)
    schedulers: list[tuple[str, ast.Call]] = []
    if not step.manual and (made := _made_in_the_loop(epoch_loop, step)) is not None:
        step = manual_optimization(facts, train, backwards, made)
    on_metric: dict[ast.stmt, str] = {}
    if not step.manual:
        try:
            own = train.after if train.function is None else []
            on_metric = monitored(facts, after if evaluate is not None else [*own, *between, *after], [*before, *rest])
            schedulers, after, between = _stepped_schedulers(facts, train, between, after, on_metric)
        except CannotLift as why:
            step = manual_optimization(facts, train, backwards, why.alone)
    recipe = Recipe(
        _enclosing_function(facts, epoch_loop),
        facts.scopes.block_of(epoch_loop),
        epoch_loop,
        *loops.epochs,
        train,
        evaluate,
        before,
        between,
        after,
        step,
        schedulers,
        on_metric,
        decided_late=not is_loader(facts, train.loader),
        whole=_whole(facts, train, step),
        unlifted=unlifted if _evaluating(facts, rest) is not None else None,
        reloads=_made_anew(facts, train, epoch_loop),
    )
    step.dropped += idle_zeros(facts, evaluate, step) if evaluate is not None else []
    check_texts(facts, recipe)
    recipe.whole_evaluation = evaluates_training(facts, recipe)
    if evaluate is not None and recipe.whole_evaluation is None:
        recipe.whole_evaluation = writes_samples(facts, evaluate)
    return recipe


def _evaluation(
    facts: Facts, rest: list[ast.stmt], epoch_loop: ast.For, lifts: bool
) -> tuple[DataPass | None, list[ast.stmt], list[ast.stmt]]:
    """The evaluation of an epoch, and the statements before and after it. Raises CannotLift where it has to stay."""
    if not lifts:
        raise CannotLift(None, "it is no plain pass over a loader")
    evaluate, between, after = evaluation(facts, rest)
    if evaluate is not None and _made_anew(facts, evaluate, epoch_loop):
        raise CannotLift(evaluate.loop, "what it goes over is made anew in every epoch")
    if evaluate is not None and network_on_cpu(facts, evaluate.loop) is not None:
        raise CannotLift(evaluate.loop, "the script has brought its network to the CPU")
    return evaluate, between, after


def _training(facts: Facts, batch_loop: ast.For) -> tuple[ast.For, DataPass, list[ast.stmt], list[ast.stmt]]:
    """The epoch loop, the training pass in it, and its statements before and after that."""
    holder = _enclosing_function(facts, batch_loop)
    epoch_loop, call = _enclosing_loop_in_scope(facts, batch_loop), None
    if epoch_loop is None:
        if holder is None:
            raise CannotLift(batch_loop, "there is one loop only, so an epoch and a batch cannot be told apart")
        call = _the_call(facts, holder)
        epoch_loop = _enclosing_loop_in_scope(facts, call)
        if epoch_loop is None:
            raise CannotLift(call, f"{holder.name}() is not called from an epoch loop")
    entry = _child_of(facts, call or batch_loop, epoch_loop)
    if not isinstance(epoch_loop, ast.For) or epoch_loop.orelse:
        raise CannotLift(epoch_loop, "the epoch loop is not a plain for loop")
    if entry not in epoch_loop.body:
        raise CannotLift(entry, "the training pass stands under a condition in the epoch loop")
    at = epoch_loop.body.index(entry)
    if call is None or holder is None:
        train, rest = pass_in_place(facts, epoch_loop.body, at, batch_loop)
        return epoch_loop, train, [], rest
    train = pass_of_function(facts, holder, call, entry, batch_loop)
    return epoch_loop, train, epoch_loop.body[:at], epoch_loop.body[at + 1 :]


def _made_in_the_loop(epoch_loop: ast.For, o: Optimization) -> CannotLift | None:
    """An optimizer or schedule that the loop makes anew: a Trainer would go on with the first."""
    names = set(o.optimizers)
    for n in walk(epoch_loop):  # schedules among them
        if is_call_of(n, "step") and isinstance(n.func.value, ast.Name):  # type: ignore[attr-defined]
            names.add(n.func.value.id)  # type: ignore[attr-defined]
    for n in walk(epoch_loop, ast.Name):
        if n.id in names and not isinstance(n.ctx, ast.Load):
            return CannotLift(n, f"`{n.id}` is made anew in the loop")
    return None


def _stepped_schedulers(
    facts: Facts, train: DataPass, between: list[ast.stmt], after: list[ast.stmt], on_metric: dict[ast.stmt, str]
) -> tuple[list[tuple[str, ast.Call]], list[ast.stmt], list[ast.stmt]]:
    """The schedules stepped once an epoch, and what is left of the statements after the evaluation and before it."""
    last, after = epoch_schedulers(facts, after, on_metric)
    middle, between = epoch_schedulers(facts, between, on_metric)
    own: list[tuple[str, ast.Call]] = []
    if train.function is None:
        own, train.after = epoch_schedulers(facts, train.after, on_metric)
    return own + middle + last, after, between


def _backwards(facts: Facts) -> list[ast.Call]:
    found = training_backwards(facts)
    if not found:
        raise CannotLift(None, "nothing is trained here: there is no backward()")
    return found


def _batch_loop(facts: Facts, backwards: list[ast.Call]) -> ast.For:
    """The innermost loop that holds every backward(), in itself or in a closure of it, and an optimizer's step."""
    common = _loops_around(facts, backwards[0])
    for call in backwards[1:]:
        around = set(_loops_around(facts, call))
        common = [loop for loop in common if loop in around]
    if not common:
        if len(backwards) > 1 and _loops_around(facts, backwards[0]):
            raise CannotLift(backwards[1], "the backward() calls stand in different loops")
        functions = (up.name for up in facts.scopes.ancestors(backwards[0]) if isinstance(up, ast.FunctionDef))
        raise CannotLift(backwards[0], outside(next(functions, None)))
    over_loader = [loop for loop in common if isinstance(loop, ast.For) and iterates_loader(facts, loop)]
    over_loader += [loop for loop in common if isinstance(loop, ast.For) and facts.loops.is_loader(loop.iter)]
    stepping = [loop for loop in common if any(is_call_of(n, "step") for n in walk(loop, ast.Call))]
    loop = (over_loader or stepping or common)[0]
    if not isinstance(loop, ast.For) or loop.orelse:
        raise CannotLift(loop, f"the batch loop {'has an else' if isinstance(loop, ast.For) else 'is a while loop'}")
    if spelled(backwards[0].func.value) in map(spelled, walk(loop.target)):  # type: ignore[attr-defined]
        raise CannotLift(loop, "its losses are computed before the loop")
    return loop


def _loops_around(facts: Facts, call: ast.Call) -> list[ast.AST]:
    """The loops around a call, the innermost first, through the closures that it stands in."""
    found: list[ast.AST] = []
    for up in facts.scopes.ancestors(call):
        if isinstance(up, (ast.For, ast.While)):
            found.append(up)
        elif isinstance(up, (ast.ClassDef, ast.AsyncFor, ast.AsyncFunctionDef)):
            break
    return found


def _enclosing_function(facts: Facts, node: ast.AST) -> ast.FunctionDef | None:
    for up in facts.scopes.ancestors(node):
        if isinstance(up, ast.FunctionDef):
            return up
        if isinstance(up, (ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            raise CannotLift(up, "the training loop is not in a plain function")
    return None


def _in_class(facts: Facts, f: ast.FunctionDef) -> bool:
    return facts.scopes.scope_of(f).is_class


def _enclosing_loop_in_scope(facts: Facts, node: ast.AST) -> ast.For | ast.While | None:
    child = node
    for up in facts.scopes.ancestors(node):
        if isinstance(up, ast.While) or (isinstance(up, ast.For) and child is not up.iter):  # which is asked for once
            return up
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return None
        child = up
    return None


def _child_of(facts: Facts, node: ast.AST, ancestor: ast.AST) -> ast.stmt:
    child = node
    for up in facts.scopes.ancestors(node):
        if up is ancestor:
            assert isinstance(child, ast.stmt)
            return child
        child = up
    raise AssertionError("not an ancestor")


def _evaluating(facts: Facts, statements: list[ast.stmt]) -> ast.For | None:
    """What goes over data among the statements: only then is there an evaluation to speak of."""
    for s in statements:
        for n in walk(s):
            if isinstance(n, ast.For) and n in facts.loops.hot_loops:
                return n
            f = local_function(facts, n) if isinstance(n, ast.Name) else None
            for loop in walk(f, ast.For) if f is not None else ():
                if loop in facts.loops.hot_loops:
                    return loop
    return None


def _made_anew(facts: Facts, train: DataPass, epoch_loop: ast.For) -> bool:
    """Whether what the batch loop goes over has to be made in every epoch: it calls something, or its names change."""
    given = _given(facts, train)
    if refilled(facts, train.loader if given is None else given, epoch_loop):
        return True
    if given is not None:
        return any(_changes(facts, n, epoch_loop) for n in walk(given))
    if is_loader(facts, train.loader) and isinstance(train.loader, ast.Name):
        scope = facts.scopes.scope_of(train.loader).lookup(train.loader.id)
        inside = train.function is not None and scope is facts.scopes.by_node.get(train.function)
        stores = scope.stores.get(train.loader.id, ()) if scope is not None else ()
        if any(epoch_loop in facts.scopes.ancestors(s) for s in stores):
            return True
        if not inside or train.loader.id in (scope.params if scope is not None else ()):
            return False
    for n in walk(train.loader):
        if isinstance(n, ast.Call):
            name = n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", "")
            if name not in COUNTS:
                return True
        elif isinstance(n, ast.Name):
            scope = facts.scopes.scope_of(n).lookup(n.id)
            stores = scope.stores.get(n.id, []) if scope is not None else []
            passed = _passed(facts, train, n)
            if passed is not None and any(_changes(facts, part, epoch_loop) for part in walk(passed)):
                return True
            body = set(walk(train.function)) if train.function is not None else set()
            if any(s in body or epoch_loop in facts.scopes.ancestors(s) for s in stores):
                return True
    return False


def _given(facts: Facts, train: DataPass) -> ast.expr | None:
    """What the epoch loop gives the pass's function for its loader: `make(4)` of `train(model, make(4))`."""
    return _passed(facts, train, train.loader) if isinstance(train.loader, ast.Name) else None


def _passed(facts: Facts, train: DataPass, n: ast.Name) -> ast.expr | None:
    """What the epoch loop gives a parameter of the pass's function, which keeps that."""
    if train.function is None or train.call is None:
        return None
    scope, name = facts.scopes.by_node[train.function], n.id
    return argument(train.call, train.function, name) if name in scope.params and name not in scope.stores else None


def _changes(facts: Facts, n: ast.AST, epoch_loop: ast.For) -> bool:
    """Whether a part of an expression may be another one in the next epoch."""
    if isinstance(n, ast.Call):
        name = n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", "")
        return name not in COUNTS and facts.names.resolve(n.func) not in STEADY
    scope = facts.scopes.scope_of(n).lookup(n.id) if isinstance(n, ast.Name) else None
    stores = scope.stores.get(n.id, ()) if scope is not None and isinstance(n, ast.Name) else ()
    return any(epoch_loop in facts.scopes.ancestors(s) for s in stores)


def _whole(facts: Facts, train: DataPass, step: Optimization) -> CannotLift | None:
    """Why the step needs whole batches, if it does."""
    return (
        no_loader(facts, train)
        or whole_batches(facts, train)
        or fixed_size(facts, train)
        or padded_batches(facts)
        or mixed_batches(facts)
        or joined_batches(facts, train)
        or late_norms(facts)
        or given_gradient(facts, train)
        or by_sample(facts)
        or changed_gradients(facts)
        or steered(facts, train)
        or loose_tensors(facts, train, step)
        or mixes_samples(facts, train)
    )


def no_loader(facts: Facts, train: DataPass) -> CannotLift | None:
    if is_loader(facts, train.loader) or not _is_plain_iterable(facts, train.loader):
        return None
    return CannotLift(train.loop, f"`{facts.short(train.loader)}` is no DataLoader")


def _overridden_modes(facts: Facts) -> None:
    """Raise for a module whose `train` or `eval` does something else: the Trainer calls them on all of its parts."""
    for c in facts.walk(ast.ClassDef):
        if any((facts.names.resolve(b) or "").startswith("torch.nn.") for b in c.bases):
            for f in c.body:
                if isinstance(f, ast.FunctionDef) and f.name in ("train", "eval"):
                    a = f.args
                    if len(a.args) - len(a.defaults) > 1:
                        raise CannotLift(f, f"{c.name}.{f.name}() is no switch of modes, as that of nn.Module is")


def _is_plain_iterable(facts: Facts, node: ast.expr) -> bool:
    """Surely no DataLoader: a display, a comprehension, a call of a builtin or the standard library, a name of one."""
    if isinstance(node, ast.Name):
        scope = facts.scopes.scope_of(node).lookup(node.id)
        values = values_of(facts, node.id, scope) if scope is not None and node.id not in scope.params else []
        shown = not any(isinstance(v, (ast.Name, ast.Subscript)) for v in values)
        return bool(values) and shown and all(_is_plain_iterable(facts, v) for v in values)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.GeneratorExp, ast.Subscript)):
        return True
    if not isinstance(node, ast.Call):
        return False
    full = facts.names.resolve(node.func) or (node.func.id if isinstance(node.func, ast.Name) else "")
    return full.split(".")[0] in PLAIN_ITERABLES or counts_with_bar(facts, node)


def _the_call(facts: Facts, f: ast.FunctionDef) -> ast.Call:
    if _in_class(facts, f):
        raise CannotLift(f, f"the batch loop is in a method, {f.name}()")
    if f.decorator_list:
        raise CannotLift(f, f"{f.name}() is decorated")
    uses = facts.devices.uses_of_function(f)
    if len(uses) != 1 or not isinstance(uses[0], ast.Call):
        if len(facts.scopes.scope_of(f).stores.get(f.name, ())) > 1:
            raise CannotLift(f, f"`{f.name}` is more than this function")
        raise CannotLift(f, f"{f.name}() is not called from exactly one place")
    return uses[0]


def _epochs(facts: Facts, loop: ast.For) -> tuple[str, ast.expr | None, ast.expr | None]:
    """The variable, the first epoch (None: 0) and one past the last (None: without end)."""
    name = getattr(loop.target, "id", "")
    scope = facts.scopes.scope_of(loop)
    for s in scope.stores.get(name, ()) if any(facts.scopes.reads(name, scope)) else ():
        if s is not loop.target and loop in facts.scopes.ancestors(s):
            raise CannotLift(s, f"the number of the epoch, `{name}`, is given another value in it")
    counted = loop.iter
    if isinstance(counted, ast.Call) and is_progress(facts, counted) and counted.args:
        counted = counted.args[0]
    name = facts.names.resolve(counted.func) if isinstance(counted, ast.Call) else None
    if isinstance(counted, ast.Call) and name == "itertools.count" and isinstance(loop.target, ast.Name):
        begins = [*counted.args, *(k.value for k in counted.keywords if k.arg == "start")]
        if len(begins) < 2 and len(begins) == len(counted.args) + len(counted.keywords):
            return loop.target.id, begins[0] if begins else None, None
    plain = isinstance(counted, ast.Call) and isinstance(counted.func, ast.Name) and counted.func.id == "range"
    if not (isinstance(counted, ast.Call) and (plain or counts_with_bar(facts, counted))):
        raise CannotLift(loop, "the epoch loop does not count with range()")
    if not isinstance(loop.target, ast.Name):
        raise CannotLift(loop, f"the epoch loop counts in `{ast.unparse(loop.target)}`, which is no plain name")
    if (plain and counted.keywords) or not 1 <= len(counted.args) <= 2:
        raise CannotLift(loop, "the epoch loop does not count up by one")
    if len(counted.args) == 1:
        return loop.target.id, None, counted.args[0]
    first = counted.args[0]
    if isinstance(first, ast.Constant) and first.value == 0:
        return loop.target.id, None, counted.args[1]
    return loop.target.id, first, counted.args[1]

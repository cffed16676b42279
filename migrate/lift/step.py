"""How a batch becomes a step: the one backward, the optimizer, clipping, schedules, and what may stand around them."""

from __future__ import annotations

import ast
from collections.abc import Container

from ..facts.arguments import argument_at
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.spelled import spelled
from .changed_behind import changed_behind
from .constant import check_constant
from .draws import draws
from .fixed_sizes import BATCH_SIZE, is_fixed_number
from .gradient_hooks import filled_by_hooks
from .holders import reaches_modules
from .loaders import batch_sizes
from .manual import made_in_step, manual_optimization, stepped_name
from .nodes import is_call_of, local_function, method_call, names_below, walk_here
from .optimizers import clips_all, is_optimizer, is_scheduler, is_torch_optimizer, makers, trains_loose_tensors
from .other_names import Held
from .rates import rates_read
from .reads import stored
from .recipe import CannotLift, DataPass, Optimization
from .zeroed_weights import zeroes_all

CLIP_NORM = {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm"}
CLIP_VALUE = {"torch.nn.utils.clip_grad_value_"}


def optimization(facts: Facts, train: DataPass, backwards: list[ast.Call], automatic: bool = True) -> Optimization:
    """Automatic where that is shown to be the same, else manual; CannotLift where neither is."""
    try:
        if not automatic:
            raise CannotLift(train.loop, "the Trainer's own order of a step is not shown to be the same")
        return _automatic(facts, train, backwards)
    except CannotLift as why:
        return manual_optimization(facts, train, backwards, why.alone)


def _automatic(facts: Facts, train: DataPass, backwards: list[ast.Call]) -> Optimization:
    backward, loss = _only_backward(facts, train, backwards)
    steps = [(s, m) for s in train.body if (m := method_call(s, "step"))]
    at = train.body.index(backward)
    optimizers = [(s, n, c) for s, (n, c) in steps if is_optimizer(facts, s, n)]
    _check_nested(facts, train)
    if len(optimizers) != 1:
        several = f"{len(optimizers)} optimizers step in the batch loop, not one"
        scaled = next(
            (c for _, (_, c) in steps if len(c.args) == 1 and isinstance(c.args[0], (ast.Name, ast.Attribute))), None
        )
        if not optimizers and scaled is not None:  # else the scaler would be gone
            raise CannotLift(scaled, f"`{facts.short(scaled)}` steps with a scaler that the script has other uses for")
        raise CannotLift(train.loop, several if optimizers else "no optimizer's step() is shown in the batch loop")
    step, name, call = optimizers[0]
    if call.args or call.keywords:
        raise CannotLift(call, "the optimizer is stepped with a closure")
    if train.body.index(step) < at:
        raise CannotLift(step, "the optimizer is stepped before backward()")
    result = Optimization([loss], [name], backward, [backward, step], step=step)
    for s, (n, c) in steps:
        if s is step:
            continue
        if train.body.index(s) < train.body.index(step) or c.args or c.keywords or result.batch_scheduler:
            raise CannotLift(s, f"`{facts.short(s)}` in the batch loop")
        if not is_scheduler(facts, s, n):
            raise CannotLift(s, f"`{n}.step()` is not shown to be a schedule")
        result.batch_scheduler = n
        result.dropped.append(s)
    _drop_zero_grad(facts, train, result, at)
    _take_clip(facts, train, result, at)
    _check_order(facts, train, result)
    return result


def _only_backward(facts: Facts, train: DataPass, backwards: list[ast.Call]) -> tuple[ast.stmt, ast.expr]:
    """The statement `loss.backward()` of the batch loop itself, and the loss."""
    if len(backwards) > 1:
        raise CannotLift(backwards[1], "there are several backward() calls")
    call = backwards[0]
    statement = facts.scopes.parents.get(call)
    if not isinstance(statement, ast.Expr) or call.args or call.keywords:
        raise CannotLift(call, "backward() is not a plain statement")
    if statement not in train.body:
        raise CannotLift(call, "backward() stands under a condition, or in a closure")
    assert isinstance(call.func, ast.Attribute)
    return statement, call.func.value


def _check_nested(facts: Facts, train: DataPass) -> None:
    for s in train.body:
        for n in walk_here(s):
            if (
                isinstance(n, ast.Call)
                and isinstance(n.func, ast.Attribute)
                and n.func.attr in ("step", "zero_grad")
                and facts.scopes.parents.get(n) not in train.body
            ):
                raise CannotLift(n, f"`{facts.short(n)}` does not stand in the batch loop itself")


def whole_batches(facts: Facts, train: DataPass) -> CannotLift | None:
    """Why the step needs whole batches: it names the loader's batch size rather than asking the batch."""
    known = batch_sizes(facts, train.loader)
    for s in train.body:
        for n in walk(s):
            if is_fixed_number(facts, n, known):
                return CannotLift(n, f"`{spelled(n)}` is taken for the size of a batch")
            if not isinstance(n, (ast.Name, ast.Attribute)) or not isinstance(n.ctx, ast.Load):
                continue
            last = n.attr if isinstance(n, ast.Attribute) else n.id
            named = (known and spelled(n) in known) or BATCH_SIZE.fullmatch(last)
            if named and not _only_shown(facts, n) and not _asks_the_batch(facts, n, train):
                return CannotLift(n, f"`{spelled(n)}` is taken for the size of a batch")
    return None


def loose_tensors(facts: Facts, train: DataPass, o: Optimization) -> CannotLift | None:
    """Why the step needs whole batches: it trains what is no parameter of a module, so ranks do not average it."""
    calls = [n for s in train.body for n in walk(s, ast.Call) if is_call_of(n, "step")]
    for call in calls:
        name = stepped_name(call)
        own = name is not None and made_in_step(facts, train, call, name)
        if own and (not o.optimizers or is_optimizer(facts, call, name)):  # type: ignore[arg-type]
            return CannotLift(call, f"`{name}` is made, or taken from others, in the step itself")
    if not o.optimizers and calls:
        return CannotLift(calls[0], f"`{facts.short(calls[0])}`: which optimizer that is does not show")
    if not o.optimizers:
        if (elsewhere := stepped_elsewhere(facts)) is not None:
            return CannotLift(elsewhere, f"`{facts.short(elsewhere)}` does not stand in the step")
        return CannotLift(train.loop, "the step changes the weights itself, without an optimizer")
    for name in o.optimizers:
        if trains_loose_tensors(facts, train.loop, name):
            return CannotLift(train.loop, f"`{name}` trains tensors that belong to no module")
    return None


def stepped_elsewhere(facts: Facts) -> ast.Call | None:
    """The step of an optimizer, in a script whose batches step none: once an epoch."""
    named = ((call, stepped_name(call)) for call in facts.calls_of("step"))
    return next((call for call, name in named if name is not None and is_optimizer(facts, call, name)), None)


def _asks_the_batch(facts: Facts, node: ast.Name | ast.Attribute, train: DataPass) -> bool:
    """Whether the step itself writes the name, as in `batch_size = x.size(0)`."""
    return isinstance(node, ast.Name) and node.id in stored(train.body)


def _only_shown(facts: Facts, node: ast.AST) -> bool:
    """Inside a print, where the size of a whole batch does no harm."""
    return any(
        isinstance(up, ast.Call) and isinstance(up.func, ast.Name) and up.func.id == "print"
        for up in facts.scopes.ancestors(node)
    )


def _drop_zero_grad(facts: Facts, train: DataPass, o: Optimization, at: int) -> None:
    found = [s for s in train.body if method_call(s, "zero_grad")]
    if len(found) != 1:
        where = found[1] if found else train.loop
        raise CannotLift(where, f"gradients are set to zero {len(found)} times in a step")
    call = method_call(found[0], "zero_grad")
    assert call is not None and o.step is not None
    given = [*call[1].args, *(k.value for k in call[1].keywords)]
    if any(not (isinstance(v, ast.Constant) and v.value is True) for v in given):  # set_to_none, torch's default
        raise CannotLift(found[0], f"`{facts.short(found[0])}` does not use the default")
    of_others = call[0] != o.optimizers[0] and not is_optimizer(facts, found[0], call[0])
    if of_others and not zeroes_all(facts, call[1].func.value, found[0], o.optimizers[0]):  # type: ignore[attr-defined]
        raise CannotLift(found[0], f"`{facts.short(found[0])}` does not reach all that `{o.optimizers[0]}` trains")
    own, other = (set(makers(facts, found[0], name)) for name in (o.optimizers[0], call[0]))
    if own and other and not own & other and is_optimizer(facts, found[0], call[0]):
        raise CannotLift(found[0], f"`{facts.short(found[0])}` is not of `{o.optimizers[0]}`, which steps")
    if at < train.body.index(found[0]) < train.body.index(o.step):
        raise CannotLift(found[0], "gradients are set to zero between backward() and step()")
    o.dropped.append(found[0])


def idle_zeros(facts: Facts, evaluate: DataPass, o: Optimization) -> list[ast.stmt]:
    """`optimizer.zero_grad()` of an evaluation that stands in the epochs: a Trainer's step has none before its own
    backward(), and nothing here reads one.
    """
    if o.manual or evaluate.function is not None or "grad" in facts.attributes:
        return []
    found = ((s, method_call(s, "zero_grad")) for s in evaluate.body)
    return [s for s, m in found if m is not None and m[0] in o.optimizers and not (m[1].args or m[1].keywords)]


def _take_clip(facts: Facts, train: DataPass, o: Optimization, at: int) -> None:
    assert o.step is not None
    for s in train.body[at + 1 : train.body.index(o.step)]:
        value = s.value if isinstance(s, ast.Expr) else None
        full = facts.names.resolve(value.func) if isinstance(value, ast.Call) else None
        if full in CLIP_NORM | CLIP_VALUE and isinstance(value, ast.Call) and o.clip is None:
            if len(value.args) + len(value.keywords) != 2:
                raise CannotLift(s, "clipping with options")
            by_norm, clipped = full in CLIP_NORM, argument_at(value, "parameters", 0)
            most = argument_at(value, "max_norm" if by_norm else "clip_value", 1)
            if clipped is None or most is None:
                raise CannotLift(s, "clipping with options")
            check_constant(facts, train, most, "the clip value")
            if not clips_all(facts, clipped, s, o.optimizers[0], each=not by_norm):
                raise CannotLift(
                    s, "clipping goes through other parameters than the optimizer has, or in another order"
                )
            o.clip, o.clip_algorithm = most, "norm" if by_norm else "value"
            o.dropped.append(s)


def _check_order(facts: Facts, train: DataPass, o: Optimization) -> None:
    """What stands after backward() runs before it in a training_step: it must not see what the step changes."""
    assert o.backward is not None
    changed = (
        _called_names(facts, train.body)
        | _trained_names(facts, o)
        | {*o.optimizers, o.batch_scheduler or o.optimizers[0]}
    )
    filled = filled_by_hooks(facts)
    at = train.body.index(o.backward)
    scheduled, held = False, Held(facts, changed | filled, train.loop, filled)
    _check_draws(facts, train.body[at + 1 :], o)
    below = [s for s in train.body[at + 1 :] if s not in o.dropped]
    if (behind := changed_behind(facts, [*train.body[: at + 1], *below], at)) is not None:
        raise CannotLift(behind, f"`{facts.short(behind)}` changes what the loss is computed of")
    for s in train.body[at + 1 :]:
        stepped = method_call(s, "step")
        scheduled = scheduled or (stepped is not None and stepped[0] == o.batch_scheduler)
        if s not in o.dropped:
            _check_statement_after(facts, s, o, held, rates_read(facts, s, o, scheduled))
    for s in train.body[:at]:
        for leaving in walk_here(s):
            if isinstance(leaving, ast.Return) or (
                isinstance(leaving, (ast.Continue, ast.Break)) and not _in_inner_loop(facts, leaving, train.loop)
            ):
                raise CannotLift(leaving, "a batch is skipped or the loop left before backward()")


def _check_draws(facts: Facts, below: list[ast.stmt], o: Optimization) -> None:
    """Raise where an optimizer of the script's own, whose step may draw, stands above what draws."""
    if is_torch_optimizer(facts, o.step or below[0], o.optimizers[0]):
        return
    for s in below:
        for n in walk(s, ast.Call):
            if draws(facts, n):
                raise CannotLift(s, f"`{facts.short(s)}` draws after the step of `{o.optimizers[0]}`, which may draw")


def _check_statement_after(facts: Facts, s: ast.stmt, o: Optimization, held: Held, same: set[ast.AST]) -> None:
    """`same`: nodes that read what the step leaves alone."""
    changed = held.changed
    for n in walk(s):
        if n in same:
            continue
        if held.holds(n):
            raise CannotLift(s, f"`{facts.short(s)}` reads `{facts.short(n)}` after the step, of what is trained")
        if isinstance(n, ast.Name) and n.id in changed:
            raise CannotLift(s, f"`{facts.short(s)}` reads `{n.id}` after the step")
        if isinstance(n, ast.Attribute) and n.attr == "grad":
            raise CannotLift(s, f"`{facts.short(s)}` reads gradients")
        if isinstance(n, ast.Name) and (f := local_function(facts, n)) is not None:
            seen = names_below(facts, f) & changed
            if seen:
                raise CannotLift(s, f"`{facts.short(s)}` reads `{sorted(seen)[0]}` after the step, in {f.name}()")
        if (
            isinstance(n, ast.Call)
            and isinstance(n.func, ast.Attribute)
            and reaches_modules(facts, n, changed, held.holds)
        ):
            raise CannotLift(s, f"`{facts.short(s)}` may read what the step changes")
        if isinstance(n, ast.AugAssign) and spelled(n.target) == spelled(o.losses[0]):
            raise CannotLift(s, f"`{facts.short(s)}` changes the loss after backward()")
    for n in walk_here(s):
        if isinstance(n, (ast.Continue, ast.Return)):
            raise CannotLift(n, "the batch loop is left early")


def _trained_names(facts: Facts, o: Optimization) -> set[str]:
    """The names X of every `X.parameters()` in what makes the optimizer."""
    found: set[str] = set()
    for call in facts.walk(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("parameters", "named_parameters"):
            found.update(n.id for n in walk(call.func.value, ast.Name))
    return found - {"self"}


def _in_inner_loop(facts: Facts, node: ast.AST, loop: ast.For) -> bool:
    for up in facts.scopes.ancestors(node):
        if up is loop:
            return False
        if isinstance(up, (ast.For, ast.While)):
            return True
    return False


def _called_names(facts: Facts, body: list[ast.stmt]) -> set[str]:
    """The models called in a body, as in `output = model(data)`: names neither imported nor functions of this file."""
    found = set()
    for s in body:
        for n in walk_here(s):
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and facts.names.resolve(n.func) is None:
                scope = facts.scopes.scope_of(n.func).lookup(n.func.id)
                if scope is not None and local_function(facts, n.func) is None:
                    stores = scope.stores.get(n.func.id, [])
                    if not any(isinstance(x, (ast.ClassDef, ast.alias)) for x in stores):
                        found.add(n.func.id)
    return found


def epoch_schedulers(
    facts: Facts, statements: list[ast.stmt], monitored: Container[ast.stmt] = ()
) -> tuple[list[tuple[str, ast.Call]], list[ast.stmt]]:
    """The `scheduler.step()` among statements of the epoch loop, and the other statements; `monitored` ones stay."""
    found: list[tuple[str, ast.Call]] = []
    rest: list[ast.stmt] = []
    for s in statements:
        m = method_call(s, "step")
        if m is not None and is_scheduler(facts, s, m[0]):
            if s in monitored:
                rest.append(s)
            elif m[1].args or m[1].keywords:
                raise CannotLift(s, f"`{facts.short(s)}` steps a schedule by hand or on a metric")
            found.append(m)
            continue
        if found and any(n.id == found[-1][0] for n in walk(s, ast.Name)):
            raise CannotLift(s, "the schedule is read after its step, in the same epoch")
        rest.append(s)
    return found, rest

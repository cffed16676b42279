"""How a batch becomes a step: the one backward, the optimizer, clipping, schedules, and what may stand around them."""

from __future__ import annotations

import ast

from ..facts.script import Facts
from .loaders import is_loader, values_of
from .nodes import local_function, method_call, names_below, walk_here
from .recipe import CannotLift, DataPass, Optimization

CLIP_NORM = {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm"}
CLIP_VALUE = {"torch.nn.utils.clip_grad_value_"}


def optimization(facts: Facts, train: DataPass) -> Optimization:
    if not is_loader(facts, train.loader):
        raise CannotLift(train.loop, f"`{facts.short(train.loader)}` is not shown to be a DataLoader")
    steps = [(s, m) for s in train.body if (m := method_call(s, "step"))]
    backward = next(s for s in train.body if isinstance(s, ast.Expr) and _is_backward(s))
    at = train.body.index(backward)
    optimizers = [(s, n, c) for s, (n, c) in steps if is_optimizer(facts, s, n)]
    nested = [
        n
        for s in train.body
        for n in walk_here(s)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr in ("step", "zero_grad")
        and facts.scopes.parents.get(n) not in train.body
    ]
    if nested:
        raise CannotLift(nested[0], f"`{facts.short(nested[0])}` does not stand in the batch loop itself")
    if len(optimizers) != 1:
        raise CannotLift(train.loop, f"a step of {len(optimizers)} optimizers, not one")
    step, name, call = optimizers[0]
    if call.args or call.keywords:
        raise CannotLift(call, "the optimizer is stepped with a closure")
    if train.body.index(step) < at:
        raise CannotLift(step, "the optimizer is stepped before backward()")
    value = backward.value
    assert isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
    result = Optimization(value.func.value, backward, name, [backward, step], step=step)
    for s, (n, c) in steps:
        if s is step:
            continue
        if train.body.index(s) < train.body.index(step) or c.args or c.keywords or result.batch_scheduler:
            raise CannotLift(s, f"`{facts.short(s)}` in the batch loop")
        result.batch_scheduler = n
        result.dropped.append(s)
    _drop_zero_grad(facts, train, result, at)
    _take_clip(facts, train, result, at)
    _check_order(facts, train, result)
    return result


def _is_backward(s: ast.Expr) -> bool:
    return isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Attribute) and s.value.func.attr == "backward"


def _drop_zero_grad(facts: Facts, train: DataPass, o: Optimization, at: int) -> None:
    found = [s for s in train.body if method_call(s, "zero_grad")]
    if len(found) != 1:
        where = found[1] if found else train.loop
        raise CannotLift(where, f"gradients are set to zero {len(found)} times in a step")
    call = method_call(found[0], "zero_grad")
    assert call is not None and o.step is not None
    if call[1].args or call[1].keywords:
        raise CannotLift(found[0], f"`{facts.short(found[0])}` does not use the default")
    if at < train.body.index(found[0]) < train.body.index(o.step):
        raise CannotLift(found[0], "gradients are set to zero between backward() and step()")
    o.dropped.append(found[0])


def _take_clip(facts: Facts, train: DataPass, o: Optimization, at: int) -> None:
    assert o.step is not None
    for s in train.body[at + 1 : train.body.index(o.step)]:
        value = s.value if isinstance(s, ast.Expr) else None
        full = facts.names.resolve(value.func) if isinstance(value, ast.Call) else None
        if full in CLIP_NORM | CLIP_VALUE and isinstance(value, ast.Call) and o.clip is None:
            if len(value.args) + len(value.keywords) != 2:
                raise CannotLift(s, "clipping with options")
            o.clip, o.clip_algorithm = value, "norm" if full in CLIP_NORM else "value"
            o.dropped.append(s)


def _check_order(facts: Facts, train: DataPass, o: Optimization) -> None:
    """What stands after backward() runs before it in a training_step: it must not see what the step changes."""
    assert o.step is not None
    changed = (
        _called_names(facts, train.body) | _trained_names(facts, o) | {o.optimizer, o.batch_scheduler or o.optimizer}
    )
    at = train.body.index(o.backward)
    for s in train.body[at + 1 :]:
        if s not in o.dropped:
            _check_statement_after(facts, s, o, changed)
    for s in train.body[:at]:
        for leaving in walk_here(s):
            if isinstance(leaving, ast.Return) or (
                isinstance(leaving, ast.Continue | ast.Break) and not _in_inner_loop(facts, leaving, train.loop)
            ):
                raise CannotLift(leaving, "a batch is skipped or the loop left before backward()")


def _check_statement_after(facts: Facts, s: ast.stmt, o: Optimization, changed: set[str]) -> None:
    for n in ast.walk(s):
        if isinstance(n, ast.Name) and n.id in changed:
            raise CannotLift(s, f"`{facts.short(s)}` reads `{n.id}` after the step")
        if isinstance(n, ast.Attribute) and n.attr == "grad":
            raise CannotLift(s, f"`{facts.short(s)}` reads gradients")
        if isinstance(n, ast.Name) and (f := local_function(facts, n)) is not None:
            seen = names_below(facts, f) & changed
            if seen:
                raise CannotLift(s, f"`{facts.short(s)}` reads `{sorted(seen)[0]}` after the step, in {f.name}()")
        if isinstance(n, ast.AugAssign) and ast.unparse(n.target) == ast.unparse(o.loss):
            raise CannotLift(s, f"`{facts.short(s)}` changes the loss after backward()")
    for n in walk_here(s):
        if isinstance(n, ast.Continue | ast.Return):
            raise CannotLift(n, "the batch loop is left early")


def _trained_names(facts: Facts, o: Optimization) -> set[str]:
    """The names X of every `X.parameters()` in what makes the optimizer."""
    found: set[str] = set()
    for call in facts.walk(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("parameters", "named_parameters"):
            found.update(n.id for n in ast.walk(call.func.value) if isinstance(n, ast.Name))
    return found - {"self"}


def _in_inner_loop(facts: Facts, node: ast.AST, loop: ast.For) -> bool:
    for up in facts.scopes.ancestors(node):
        if up is loop:
            return False
        if isinstance(up, ast.For | ast.While):
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
                    if not any(isinstance(x, ast.ClassDef | ast.alias) for x in stores):
                        found.add(n.func.id)
    return found


def is_optimizer(facts: Facts, at: ast.AST, name: str, depth: int = 0) -> bool:
    """Whether the name, read at this node, is only ever an optimizer of torch.optim (or of a class named like one)."""
    scope = facts.scopes.scope_of(at).lookup(name)
    if scope is None or depth > 6:
        return False
    values = values_of(facts, name, scope, 0)
    return bool(values) and all(_makes(facts, v, _is_optimizer_name, depth) for v in values)


def is_scheduler(facts: Facts, at: ast.AST, name: str, depth: int = 0) -> bool:
    scope = facts.scopes.scope_of(at).lookup(name)
    if scope is None or depth > 6:
        return False
    values = values_of(facts, name, scope, 0)
    return bool(values) and all(_makes(facts, v, _is_scheduler_name, depth) for v in values)


def _makes(facts: Facts, value: ast.expr, test: object, depth: int) -> bool:
    assert callable(test)
    if isinstance(value, ast.Call):
        return bool(test(facts.names.resolve(value.func) or ast.unparse(value.func)))
    if isinstance(value, ast.IfExp):
        return _makes(facts, value.body, test, depth) and _makes(facts, value.orelse, test, depth)
    if isinstance(value, ast.Name):
        again = is_optimizer if test is _is_optimizer_name else is_scheduler
        return again(facts, value, value.id, depth + 1)
    return False


def _is_optimizer_name(full: str) -> bool:
    last = full.split(".")[-1]
    return (full.startswith("torch.optim.") and ".lr_scheduler" not in full) or last in ("AdamW", "Adam", "SGD")


def _is_scheduler_name(full: str) -> bool:
    return full.startswith("torch.optim.lr_scheduler.")


def epoch_schedulers(facts: Facts, statements: list[ast.stmt]) -> tuple[list[tuple[str, ast.Call]], list[ast.stmt]]:
    """The `scheduler.step()` among statements of the epoch loop, and the other statements."""
    found: list[tuple[str, ast.Call]] = []
    rest: list[ast.stmt] = []
    for s in statements:
        m = method_call(s, "step")
        if m is not None and is_scheduler(facts, s, m[0]):
            if m[1].args or m[1].keywords:
                raise CannotLift(s, f"`{facts.short(s)}` steps a schedule by hand or on a metric")
            found.append(m)
            continue
        if found and any(isinstance(n, ast.Name) and n.id == found[-1][0] for n in ast.walk(s)):
            raise CannotLift(s, "the schedule is read after its step, in the same epoch")
        rest.append(s)
    return found, rest

"""Finding the recipe of a script: the one backward, the batch loop around it, the epoch loop around that.

Recognition only reads. Where the facts do not show that the lift is the same program it raises CannotLift with the line
that decided, and the loop is kept.
"""

from __future__ import annotations

import ast

from ..facts.script import Facts
from .loaders import is_progress, iterates_loader
from .manual import manual_optimization
from .passes import evaluation, pass_in_place, pass_of_function
from .recipe import CannotLift, DataPass, Recipe
from .step import epoch_schedulers, optimization


def find(facts: Facts) -> Recipe:
    """The recipe of a script; CannotLift where there is none."""
    backwards = _backwards(facts)
    batch_loop = _batch_loop(facts, backwards)
    holder = _enclosing_function(facts, batch_loop)
    outer = _enclosing_loop_in_scope(facts, batch_loop)
    if outer is not None:
        epoch_loop, entry, function, call = outer, _child_of(facts, batch_loop, outer), None, None
    else:
        if holder is None:
            raise CannotLift(batch_loop, "there is one loop only, so an epoch and a batch cannot be told apart")
        call, function = _the_call(facts, holder), holder
        found = _enclosing_loop_in_scope(facts, call)
        if found is None:
            raise CannotLift(call, f"{holder.name}() is not called from an epoch loop")
        epoch_loop, entry = found, _child_of(facts, call, found)
    if not isinstance(epoch_loop, ast.For) or epoch_loop.orelse:
        raise CannotLift(epoch_loop, "the epoch loop is not a plain for loop")
    epoch, first, last = _epochs(facts, epoch_loop)
    if entry not in epoch_loop.body:
        raise CannotLift(entry, "the training pass stands under a condition in the epoch loop")
    at = epoch_loop.body.index(entry)
    if function is not None and call is not None:
        train = pass_of_function(facts, function, call, entry, batch_loop)
        before = epoch_loop.body[:at]
        rest = epoch_loop.body[at + 1 :]
    else:
        train, rest = pass_in_place(facts, epoch_loop.body, at, batch_loop)
        before = []
    evaluate, between, after = evaluation(facts, rest)
    if function is None:
        train.after, between = between, []
    step = optimization(facts, train, backwards)
    schedulers: list[tuple[str, ast.Call]] = []
    if not step.manual:
        try:
            schedulers, after, between = _stepped_schedulers(facts, train, between, after)
        except CannotLift as why:
            step = manual_optimization(facts, train, backwards, why)
    trunk = _enclosing_function(facts, epoch_loop)
    if trunk is not None and _in_class(facts, trunk):
        raise CannotLift(trunk, f"the epoch loop is in a method, {trunk.name}()")
    block = _block_of(facts, epoch_loop)
    return Recipe(
        trunk,
        block,
        epoch_loop,
        epoch,
        first,
        last,
        train,
        evaluate,
        before,
        between,
        after,
        step,
        schedulers,
    )


def _stepped_schedulers(
    facts: Facts, train: DataPass, between: list[ast.stmt], after: list[ast.stmt]
) -> tuple[list[tuple[str, ast.Call]], list[ast.stmt], list[ast.stmt]]:
    """The schedules stepped once an epoch, and what is left of the statements after the evaluation and before it."""
    last, after = epoch_schedulers(facts, after)
    middle, between = epoch_schedulers(facts, between)
    own: list[tuple[str, ast.Call]] = []
    if train.function is None:
        own, train.after = epoch_schedulers(facts, train.after)
    return own + middle + last, after, between


def _backwards(facts: Facts) -> list[ast.Call]:
    found = [
        c
        for c in facts.walk(ast.Call)
        if isinstance(c.func, ast.Attribute) and c.func.attr == "backward" and facts.names.resolve(c.func) is None
    ]
    if not found:
        raise CannotLift(None, "nothing is trained here: there is no backward()")
    return found


def _batch_loop(facts: Facts, backwards: list[ast.Call]) -> ast.For:
    """The innermost loop over a loader that holds every backward(), in itself or in a closure of it."""
    loops: list[ast.AST | None] = []
    for call in backwards:
        inside = None
        for up in facts.scopes.ancestors(call):
            if isinstance(up, ast.For) and iterates_loader(facts, up):
                inside = up
                break
            if isinstance(up, ast.ClassDef):
                raise CannotLift(call, "backward() stands in a method")
        loops.append(inside)
    loop = loops[0]
    if not isinstance(loop, ast.For):
        raise CannotLift(backwards[0], _why_no_loop(facts, backwards[0]))
    other = next((c for c, inside in zip(backwards, loops, strict=True) if inside is not loop), None)
    if other is not None:
        raise CannotLift(other, "there are backward() calls outside the batch loop")
    if loop.orelse:
        raise CannotLift(loop, "the batch loop has an else")
    return loop


def _why_no_loop(facts: Facts, call: ast.Call) -> str:
    for up in facts.scopes.ancestors(call):
        if isinstance(up, ast.For):
            return f"`{facts.short(up.iter)}` is not shown to be a DataLoader"
        if isinstance(up, ast.While):
            return "the batch loop is a while loop"
        if isinstance(up, ast.FunctionDef):
            return f"backward() stands in {up.name}(), outside the batch loop"
    return "backward() stands outside any loop"


def _enclosing_function(facts: Facts, node: ast.AST) -> ast.FunctionDef | None:
    for up in facts.scopes.ancestors(node):
        if isinstance(up, ast.FunctionDef):
            return up
        if isinstance(up, ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            raise CannotLift(up, "the training loop is not in a plain function")
    return None


def _in_class(facts: Facts, f: ast.FunctionDef) -> bool:
    return facts.scopes.scope_of(f).is_class


def _enclosing_loop_in_scope(facts: Facts, node: ast.AST) -> ast.For | ast.While | None:
    for up in facts.scopes.ancestors(node):
        if isinstance(up, ast.For | ast.While):
            return up
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return None
    return None


def _child_of(facts: Facts, node: ast.AST, ancestor: ast.AST) -> ast.stmt:
    child = node
    for up in facts.scopes.ancestors(node):
        if up is ancestor:
            assert isinstance(child, ast.stmt)
            return child
        child = up
    raise AssertionError("not an ancestor")


def _block_of(facts: Facts, statement: ast.stmt) -> list[ast.stmt]:
    parent = facts.scopes.parents[statement]
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    raise CannotLift(statement, "the epoch loop stands in an unusual block")


def _the_call(facts: Facts, f: ast.FunctionDef) -> ast.Call:
    if _in_class(facts, f):
        raise CannotLift(f, f"the batch loop is in a method, {f.name}()")
    if f.decorator_list:
        raise CannotLift(f, f"{f.name}() is decorated")
    uses = facts.devices.uses_of_function(f)
    if len(uses) != 1 or not isinstance(uses[0], ast.Call):
        raise CannotLift(f, f"{f.name}() is not called from exactly one place")
    return uses[0]


def _epochs(facts: Facts, loop: ast.For) -> tuple[str, ast.expr | None, ast.expr]:
    """The variable, the first epoch (None: 0) and one past the last."""
    counted = loop.iter
    if isinstance(counted, ast.Call) and is_progress(facts, counted) and counted.args:
        counted = counted.args[0]
    name = facts.names.resolve(counted.func) if isinstance(counted, ast.Call) else None
    plain = isinstance(counted, ast.Call) and isinstance(counted.func, ast.Name) and counted.func.id == "range"
    if not (isinstance(counted, ast.Call) and (plain or name in ("tqdm.trange", "tqdm.auto.trange"))):
        raise CannotLift(loop, "the epoch loop does not count with range()")
    if not isinstance(loop.target, ast.Name) or counted.keywords or not 1 <= len(counted.args) <= 2:
        raise CannotLift(loop, "the epoch loop does not count up by one")
    if len(counted.args) == 1:
        return loop.target.id, None, counted.args[0]
    first = counted.args[0]
    if isinstance(first, ast.Constant) and first.value == 0:
        return loop.target.id, None, counted.args[1]
    return loop.target.id, first, counted.args[1]

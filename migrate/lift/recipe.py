"""What a raw training loop is made of: the trunk that holds the epoch loop, and a pass over the data for training and one
for evaluation, each written in place or as a function.

Recognition only reads. Where the facts do not show that the lift is the same program it raises CannotLift with the line
that decided, and the loop is kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..facts.script import Facts

NO_GRAD = {
    "torch.no_grad",
    "torch.inference_mode",
    "torch.autograd.no_grad",
    "torch.set_grad_enabled",
    "torch.autograd.inference_mode",
}
CLIP_NORM = {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm"}
CLIP_VALUE = {"torch.nn.utils.clip_grad_value_"}


class CannotLift(Exception):
    """The facts do not show that the lift is the same program."""

    def __init__(self, node: ast.AST | None, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason
        self.line = getattr(node, "lineno", 1)  # of the text that was looked at; the pipeline maps it to the original


@dataclass
class DataPass:
    """One pass over a loader: what comes before the batch loop, in it, and after it."""

    loop: ast.For
    loader: ast.expr
    target: ast.expr
    index: str | None
    index_start: ast.expr | None
    before: list[ast.stmt]
    body: list[ast.stmt]
    after: list[ast.stmt]
    function: ast.FunctionDef | None = None
    call: ast.Call | None = None
    result: ast.expr | None = None  # what the caller assigns the function's value to
    returns: ast.expr | None = None
    no_grad: bool = False


@dataclass
class Optimization:
    """How a batch becomes a step."""

    loss: ast.expr
    backward: ast.stmt
    optimizer: str
    dropped: list[ast.stmt] = field(default_factory=list)
    clip: ast.Call | None = None
    clip_algorithm: str = "norm"
    step: ast.stmt | None = None
    batch_scheduler: str | None = None


@dataclass
class Recipe:
    trunk: ast.FunctionDef | None  # None: the module level, or the main guard
    trunk_body: list[ast.stmt]  # the block that holds the epoch loop
    epoch_loop: ast.For
    epoch: str
    first_epoch: ast.expr | None
    last_epoch: ast.expr
    train: DataPass
    evaluate: DataPass | None
    before: list[ast.stmt]  # statements of the epoch loop before the training pass
    between: list[ast.stmt]
    after: list[ast.stmt]
    optimization: Optimization
    schedulers: list[tuple[str, ast.Call]]  # stepped once an epoch


def find(facts: Facts) -> Recipe:
    """The recipe of a script; CannotLift where there is none."""
    backward = _the_backward(facts)
    batch_loop = _enclosing_loop(facts, backward)
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
        train = _pass_of_function(facts, function, call, entry, batch_loop)
        before = epoch_loop.body[:at]
        rest = epoch_loop.body[at + 1 :]
    else:
        train, rest = _pass_in_place(facts, epoch_loop.body, at, batch_loop)
        before = []
    evaluate, between, after = _evaluation(facts, rest)
    if function is None:
        train.after, between = between, []
    optimization = _optimization(facts, train)
    schedulers, after = _epoch_schedulers(facts, after)
    more, between = _epoch_schedulers(facts, between)
    if function is None:
        more, train.after = _epoch_schedulers(facts, train.after)
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
        optimization,
        more + schedulers,
    )


# -- where things are -------------------------------------------------------------------------------------------------


def _the_backward(facts: Facts) -> ast.stmt:
    found = [
        c
        for c in facts.walk(ast.Call)
        if isinstance(c.func, ast.Attribute) and c.func.attr == "backward" and facts.names.resolve(c.func) is None
    ]
    if not found:
        raise CannotLift(None, "nothing is trained here: there is no backward()")
    if len(found) > 1:
        raise CannotLift(found[1], "there are several backward() calls")
    call = found[0]
    statement = facts.scopes.parents.get(call)
    if not isinstance(statement, ast.Expr) or call.args or call.keywords:
        raise CannotLift(call, "backward() is not a plain statement")
    return statement


def _enclosing_loop(facts: Facts, node: ast.AST) -> ast.For:
    for up in facts.scopes.ancestors(node):
        if isinstance(up, ast.For):
            if node not in up.body:
                raise CannotLift(node, "backward() stands under a condition, or in a function of its own")
            if up.orelse:
                raise CannotLift(up, "the batch loop has an else")
            return up
        if isinstance(up, ast.While):
            raise CannotLift(up, "the batch loop is a while loop")
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            raise CannotLift(node, "backward() stands in a function of its own, outside the batch loop")
    raise CannotLift(node, "backward() stands outside any loop")


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
    if isinstance(counted, ast.Call) and _is_progress(facts, counted) and counted.args:
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


def _is_progress(facts: Facts, call: ast.Call) -> bool:
    full = facts.names.resolve(call.func) or ""
    return full.split(".")[0] == "tqdm" or full == "rich.progress.track"


# -- the passes -------------------------------------------------------------------------------------------------------


def batch_source(facts: Facts, loop: ast.For) -> tuple[ast.expr, ast.expr, str | None, ast.expr | None]:
    """(loader, target of a batch, index name, index start) of a batch loop; tqdm around it is left out."""
    source, target, index, start = loop.iter, loop.target, None, None
    for _ in range(3):
        if not isinstance(source, ast.Call) or not source.args:
            break
        if isinstance(source.func, ast.Name) and source.func.id == "enumerate" and index is None:
            if not (isinstance(target, ast.Tuple) and len(target.elts) == 2 and isinstance(target.elts[0], ast.Name)):
                raise CannotLift(loop, "the batch loop unpacks enumerate() in an unusual way")
            index, target = target.elts[0].id, target.elts[1]
            start = source.args[1] if len(source.args) > 1 else None
            start = next((k.value for k in source.keywords if k.arg == "start"), start)
            source = source.args[0]
        elif _is_progress(facts, source):
            source = source.args[0]
        else:
            break
    return source, target, index, start


def _flat(facts: Facts, statements: list[ast.stmt]) -> tuple[list[ast.stmt], bool]:
    """The statements with `with torch.no_grad():` opened up, and whether there was one."""
    flat: list[ast.stmt] = []
    opened = False
    for s in statements:
        if isinstance(s, ast.With) and all(_is_no_grad(facts, i.context_expr) for i in s.items):
            inner, _ = _flat(facts, s.body)
            flat += inner
            opened = True
        else:
            flat.append(s)
    return flat, opened


def _is_no_grad(facts: Facts, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and facts.names.resolve(node.func) in NO_GRAD


def _pass_of_function(facts: Facts, f: ast.FunctionDef, call: ast.Call, entry: ast.stmt, loop: ast.For) -> DataPass:
    a = f.args
    if (
        a.vararg
        or a.kwarg
        or any(isinstance(x, ast.Starred) for x in call.args)
        or any(k.arg is None for k in call.keywords)
    ):
        raise CannotLift(call, f"{f.name}() is called with spread arguments")
    result: ast.expr | None = None
    if isinstance(entry, ast.Assign) and entry.value is call and len(entry.targets) == 1:
        result = entry.targets[0]
    elif not (isinstance(entry, ast.Expr) and entry.value is call):
        raise CannotLift(entry, f"the value of {f.name}() is used in an expression")
    body = f.body[1:] if ast.get_docstring(f, clean=False) is not None else f.body
    statements, no_grad = _flat(facts, body)
    no_grad = no_grad or any(_is_no_grad(facts, d) or facts.names.resolve(d) in NO_GRAD for d in f.decorator_list)
    if loop not in statements:
        raise CannotLift(loop, f"the batch loop of {f.name}() is nested in another statement")
    at = statements.index(loop)
    after, returns = statements[at + 1 :], None
    if after and isinstance(after[-1], ast.Return):
        returns = after[-1].value
        after = after[:-1]
    for s in (*statements[:at], *after):
        for n in walk_here(s):
            if isinstance(n, ast.Return | ast.Yield | ast.YieldFrom):
                raise CannotLift(n, f"{f.name}() returns in the middle")
    loader, target, index, start = batch_source(facts, loop)
    return DataPass(
        loop, loader, target, index, start, statements[:at], loop.body, after, f, call, result, returns, no_grad
    )


def _pass_in_place(facts: Facts, statements: list[ast.stmt], at: int, loop: ast.For) -> tuple[DataPass, list[ast.stmt]]:
    """A pass written in the epoch loop: all before it belongs to it, what follows is looked at by the caller."""
    if statements[at] is not loop:
        raise CannotLift(statements[at], "the batch loop is nested in another statement")
    loader, target, index, start = batch_source(facts, loop)
    return DataPass(loop, loader, target, index, start, statements[:at], loop.body, []), statements[at + 1 :]


def _evaluation(facts: Facts, rest: list[ast.stmt]) -> tuple[DataPass | None, list[ast.stmt], list[ast.stmt]]:
    """The evaluation pass among the statements after the training pass, those before it and those after it."""
    found: list[tuple[int, DataPass]] = []
    for i, s in enumerate(rest):
        p = _evaluation_call(facts, s)
        if p is not None:
            found.append((i, p))
    if found:
        if len(found) > 1:
            raise CannotLift(rest[found[1][0]], "there are several evaluation passes in an epoch")
        i, p = found[0]
        _no_loaders(facts, rest[:i] + rest[i + 1 :])
        return p, rest[:i], rest[i + 1 :]
    return _evaluation_in_place(facts, rest)


def _evaluation_call(facts: Facts, s: ast.stmt) -> DataPass | None:
    """`test(model, loader)` or `acc = test(...)` where test() holds one loop over a loader."""
    value = s.value if isinstance(s, ast.Expr | ast.Assign) else None
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name)):
        return None
    f = local_function(facts, value.func)
    if f is None:
        return None
    statements, _ = _flat(facts, f.body)
    loops = [x for x in statements if isinstance(x, ast.For) and iterates_loader(facts, x)]
    if not loops:
        if any(isinstance(n, ast.For) and iterates_loader(facts, n) for n in ast.walk(f)):
            raise CannotLift(f, f"the batch loop of {f.name}() is nested in another statement")
        return None
    if len(loops) > 1:
        raise CannotLift(loops[1], f"{f.name}() passes over data twice")
    if any(not (_is_no_grad(facts, d) or facts.names.resolve(d) in NO_GRAD) for d in f.decorator_list):
        raise CannotLift(f, f"{f.name}() is decorated")
    return _pass_of_function(facts, f, value, s, loops[0])


def _evaluation_in_place(facts: Facts, rest: list[ast.stmt]) -> tuple[DataPass | None, list[ast.stmt], list[ast.stmt]]:
    flat, no_grad = _flat(facts, rest)
    loops = [s for s in flat if isinstance(s, ast.For) and iterates_loader(facts, s)]
    if not loops:
        _no_loaders(facts, rest)
        return None, rest, []
    if len(loops) > 1:
        raise CannotLift(loops[1], "there are several evaluation passes in an epoch")
    at = flat.index(loops[0])
    loader, target, index, start = batch_source(facts, loops[0])
    first = at
    while first > 0 and _prepares_evaluation(facts, flat[first - 1], flat[at]):
        first -= 1
    _no_loaders(facts, flat[:first] + flat[at + 1 :])
    p = DataPass(loops[0], loader, target, index, start, flat[first:at], loops[0].body, flat[at + 1 :], no_grad=no_grad)
    return p, flat[:first], []


def _prepares_evaluation(facts: Facts, s: ast.stmt, loop: ast.stmt) -> bool:
    """A counter that the loop uses, or model.eval(): it opens the evaluation."""
    if isinstance(s, ast.Assign):
        stored = {n.id for t in s.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        return bool(stored & {n.id for n in ast.walk(loop) if isinstance(n, ast.Name)}) and not _calls_model(facts, s)
    return is_mode_call(s, "eval") is not None


def _calls_model(facts: Facts, s: ast.stmt) -> bool:
    return any(isinstance(n, ast.Call) and facts.names.resolve(n.func) is None for n in ast.walk(s))


def _no_loaders(facts: Facts, statements: list[ast.stmt]) -> None:
    for s in statements:
        for n in ast.walk(s):
            if isinstance(n, ast.For) and iterates_loader(facts, n):
                raise CannotLift(n, "another pass over a loader stands in the epoch loop")
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name):
                f = local_function(facts, n.func)
                if f is not None and any(isinstance(x, ast.For) and iterates_loader(facts, x) for x in ast.walk(f)):
                    raise CannotLift(n, f"{f.name}() passes over a loader from inside another statement")


def local_function(facts: Facts, name: ast.Name) -> ast.FunctionDef | None:
    scope = facts.scopes.scope_of(name).lookup(name.id)
    if scope is None:
        return None
    stores = scope.stores.get(name.id, [])
    return stores[0] if len(stores) == 1 and isinstance(stores[0], ast.FunctionDef) else None


def is_mode_call(s: ast.stmt, mode: str) -> str | None:
    """The name of the module for `model.train()` or `model.eval()` as a statement."""
    if (
        isinstance(s, ast.Expr)
        and isinstance(s.value, ast.Call)
        and isinstance(s.value.func, ast.Attribute)
        and s.value.func.attr == mode
        and isinstance(s.value.func.value, ast.Name)
        and not s.value.args
        and not s.value.keywords
    ):
        return s.value.func.value.id
    return None


def walk_here(node: ast.AST) -> Iterator[ast.AST]:
    """ast.walk without the bodies of nested functions and classes."""
    stack = [node]
    while stack:
        n = stack.pop()
        yield n
        if n is not node and isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        stack.extend(ast.iter_child_nodes(n))


# -- loaders ----------------------------------------------------------------------------------------------------------

LOADER = "torch.utils.data.DataLoader"


def iterates_loader(facts: Facts, loop: ast.For) -> bool:
    try:
        source, _, _, _ = batch_source(facts, loop)
    except CannotLift:
        return False
    return is_loader(facts, source)


def is_loader(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """Whether every value of the expression is a DataLoader, as far as this file shows."""
    if depth > 8:
        return False
    if isinstance(node, ast.Call):
        full = facts.names.resolve(node.func)
        if full is not None and full.split(".")[-1] in ("DataLoader", "StatefulDataLoader"):
            return True
        if isinstance(node.func, ast.Name):
            f = local_function(facts, node.func)
            if f is not None:
                returned = [n.value for n in walk_here(f) if isinstance(n, ast.Return) and n.value is not None]
                return bool(returned) and all(is_loader(facts, r, depth + 1) for r in returned)
        return False
    if isinstance(node, ast.IfExp):
        return is_loader(facts, node.body, depth + 1) and is_loader(facts, node.orelse, depth + 1)
    if not isinstance(node, ast.Name):
        return False
    scope = facts.scopes.scope_of(node).lookup(node.id)
    if scope is None:
        return False
    values = _values(facts, node.id, scope, depth)
    return bool(values) and all(is_loader(facts, v, depth + 1) for v in values)


def _values(facts: Facts, name: str, scope: object, depth: int) -> list[ast.expr]:
    from ..facts.scopes import Scope

    assert isinstance(scope, Scope)
    values: list[ast.expr] = []
    for store in scope.stores.get(name, ()):
        parent = facts.scopes.parents.get(store)
        if isinstance(parent, ast.Assign):
            values.append(parent.value)
        elif isinstance(parent, ast.Tuple) and isinstance(facts.scopes.parents.get(parent), ast.Assign):
            values += _unpacked(facts, parent, store)
        else:
            return []
    if name in scope.params:
        values += facts.devices.given(scope, name) or []
    return values


def _unpacked(facts: Facts, target: ast.Tuple, store: ast.AST) -> list[ast.expr]:
    """`train_loader, test_loader = get_loaders()`: the elements that the function's returns have at that place."""
    assign = facts.scopes.parents[target]
    assert isinstance(assign, ast.Assign)
    place = next(i for i, e in enumerate(target.elts) if e is store)
    value = assign.value
    if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        return [value.elts[place]]
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        f = local_function(facts, value.func)
        if f is not None:
            returned = [n.value for n in walk_here(f) if isinstance(n, ast.Return) and n.value is not None]
            if all(isinstance(r, ast.Tuple) and len(r.elts) == len(target.elts) for r in returned):
                return [r.elts[place] for r in returned]  # type: ignore[attr-defined]
    return []


# -- one step ---------------------------------------------------------------------------------------------------------


def method_call(s: ast.stmt, method: str) -> tuple[str, ast.Call] | None:
    """(name, call) for the statement `name.method(...)`."""
    if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Attribute):
        f = s.value.func
        if f.attr == method and isinstance(f.value, ast.Name):
            return f.value.id, s.value
    return None


def _optimization(facts: Facts, train: DataPass) -> Optimization:
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
    """What stands after backward() runs before it in a training_step: it must not see parameters, gradients, optimizers."""
    assert o.step is not None
    models = {n for s in train.body if (n := _called_name(facts, s))}
    for s in train.body[train.body.index(o.backward) + 1 :]:
        if s in o.dropped:
            continue
        for n in ast.walk(s):
            if isinstance(n, ast.Name) and n.id in models | {o.optimizer, o.batch_scheduler}:
                raise CannotLift(s, f"`{facts.short(s)}` reads `{n.id}` after the step")
            if isinstance(n, ast.Attribute) and n.attr == "grad":
                raise CannotLift(s, f"`{facts.short(s)}` reads gradients")
        for n in walk_here(s):
            if isinstance(n, ast.Continue | ast.Return):
                raise CannotLift(n, "the batch loop is left early")
    for s in train.body[: train.body.index(o.backward)]:
        for n in walk_here(s):
            if isinstance(n, ast.Continue | ast.Return | ast.Break) and not _in_inner_loop(facts, n, train.loop):
                raise CannotLift(n, "a batch is skipped or the loop left before backward()")


def _in_inner_loop(facts: Facts, node: ast.AST, loop: ast.For) -> bool:
    for up in facts.scopes.ancestors(node):
        if up is loop:
            return False
        if isinstance(up, ast.For | ast.While):
            return True
    return False


def _called_name(facts: Facts, s: ast.stmt) -> str | None:
    """The model called in `output = model(data)`: a plain name that is neither imported nor a function of this file."""
    for n in walk_here(s):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and facts.names.resolve(n.func) is None:
            scope = facts.scopes.scope_of(n.func).lookup(n.func.id)
            if scope is not None and local_function(facts, n.func) is None:
                stores = scope.stores.get(n.func.id, [])
                if not any(isinstance(x, ast.ClassDef | ast.alias) for x in stores):
                    return n.func.id
    return None


def is_optimizer(facts: Facts, at: ast.AST, name: str, depth: int = 0) -> bool:
    """Whether the name, read at this node, is only ever an optimizer of torch.optim (or of a class named like one)."""
    scope = facts.scopes.scope_of(at).lookup(name)
    if scope is None or depth > 6:
        return False
    values = _values(facts, name, scope, 0)
    return bool(values) and all(_makes(facts, v, _is_optimizer_name, depth) for v in values)


def is_scheduler(facts: Facts, at: ast.AST, name: str, depth: int = 0) -> bool:
    scope = facts.scopes.scope_of(at).lookup(name)
    if scope is None or depth > 6:
        return False
    values = _values(facts, name, scope, 0)
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


def _epoch_schedulers(facts: Facts, statements: list[ast.stmt]) -> tuple[list[tuple[str, ast.Call]], list[ast.stmt]]:
    """`scheduler.step()` among statements of the epoch loop, and the others. A metric as argument is kept with the call."""
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

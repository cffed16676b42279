"""A pass over the data, for training or evaluation, written in place or as a function."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from .differentiating import differentiates
from .loaders import batch_source, iterates_loader
from .nodes import is_mode_call, local_function, walk_here
from .recipe import CannotLift, DataPass

NO_GRAD = {
    "torch.no_grad",
    "torch.inference_mode",
    "torch.autograd.no_grad",
    "torch.set_grad_enabled",
    "torch.autograd.inference_mode",
}


def pass_of_function(facts: Facts, f: ast.FunctionDef, call: ast.Call, entry: ast.stmt, loop: ast.For) -> DataPass:
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
    elif isinstance(entry, (ast.If, ast.For, ast.While, ast.Try, ast.With)):
        raise CannotLift(entry, f"{f.name}() is called within another statement of the epoch loop")
    elif not (isinstance(entry, ast.Expr) and entry.value is call):
        raise CannotLift(entry, f"the value of {f.name}() is used in an expression")
    body = f.body[1:] if ast.get_docstring(f, clean=False) is not None else f.body
    statements, no_grad = flat(facts, body)
    no_grad = no_grad or any(is_without_gradients(facts, d) for d in f.decorator_list)
    if loop not in statements:
        raise CannotLift(loop, f"the batch loop of {f.name}() is nested in another statement")
    at = statements.index(loop)
    after, returns = statements[at + 1 :], None
    if after and isinstance(after[-1], ast.Return):
        returns = after[-1].value
        after = after[:-1]
    for s in (*statements[:at], *after):
        for n in walk_here(s):
            if isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)):
                raise CannotLift(n, f"{f.name}() returns in the middle")
    loader, target, index, start = batch_source(facts, loop)
    return DataPass(
        loop, loader, target, index, start, statements[:at], loop.body, after, f, call, result, returns, no_grad
    )


def pass_in_place(facts: Facts, statements: list[ast.stmt], at: int, loop: ast.For) -> tuple[DataPass, list[ast.stmt]]:
    """A pass written in the epoch loop: all before it belongs to it, what follows is looked at by the caller."""
    if statements[at] is not loop:
        raise CannotLift(statements[at], "the batch loop is nested in another statement")
    loader, target, index, start = batch_source(facts, loop)
    return DataPass(loop, loader, target, index, start, statements[:at], loop.body, []), statements[at + 1 :]


def evaluation(facts: Facts, rest: list[ast.stmt]) -> tuple[DataPass | None, list[ast.stmt], list[ast.stmt]]:
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
        _check(facts, p)
        return p, rest[:i], rest[i + 1 :]
    return _evaluation_in_place(facts, rest)


def _evaluation_call(facts: Facts, s: ast.stmt) -> DataPass | None:
    """`test(model, loader)` or `acc = test(...)` where test() holds one loop over a loader."""
    value = s.value if isinstance(s, (ast.Expr, ast.Assign)) else None
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name)):
        return None
    f = local_function(facts, value.func)
    if f is None:
        return None
    statements, _ = flat(facts, f.body)
    loops = [x for x in statements if isinstance(x, ast.For) and iterates_loader(facts, x)]
    if not loops:
        if any(iterates_loader(facts, n) for n in walk(f, ast.For)):
            raise CannotLift(f, f"the batch loop of {f.name}() is nested in another statement")
        return None
    if len(loops) > 1:
        raise CannotLift(loops[1], f"{f.name}() passes over data twice")
    if not all(is_without_gradients(facts, d) for d in f.decorator_list):
        raise CannotLift(f, f"{f.name}() is decorated")
    return pass_of_function(facts, f, value, s, loops[0])


def _evaluation_in_place(facts: Facts, rest: list[ast.stmt]) -> tuple[DataPass | None, list[ast.stmt], list[ast.stmt]]:
    opened, no_grad = flat(facts, rest)
    loops = [s for s in opened if isinstance(s, ast.For) and iterates_loader(facts, s)]
    if not loops:
        _no_loaders(facts, rest)
        return None, rest, []
    if len(loops) > 1:
        raise CannotLift(loops[1], "there are several evaluation passes in an epoch")
    at = opened.index(loops[0])
    loader, target, index, start = batch_source(facts, loops[0])
    first = at
    while first > 0 and _prepares_evaluation(facts, opened[first - 1], opened[at]):
        first -= 1
    _no_loaders(facts, opened[:first] + opened[at + 1 :])
    last = next((i for i, s in enumerate(opened) if i > at and _leaves_the_loop(s)), len(opened))
    p = DataPass(
        loops[0], loader, target, index, start, opened[first:at], loops[0].body, opened[at + 1 : last], no_grad=no_grad
    )
    _check(facts, p)
    return p, opened[:first], opened[last:]


def _leaves_the_loop(node: ast.AST) -> bool:
    """Whether a `break` in a statement ends the epochs: what it stands in belongs to the epoch's end."""
    inner = [n for n in ast.iter_child_nodes(node) if not isinstance(n, (ast.expr, ast.For, ast.While))]
    return isinstance(node, ast.Break) or any(_leaves_the_loop(n) for n in inner)


def _check(facts: Facts, p: DataPass) -> None:
    _not_left(p)
    asks = differentiates(facts, p.body) if not p.no_grad else None
    if asks is not None:
        raise CannotLift(asks, f"`{facts.short(asks)}` asks for gradients, and a Trainer evaluates without")


def _not_left(p: DataPass) -> None:
    """Raise for an evaluation loop that is left early: validation goes over all of its loader."""
    stack: list[ast.AST] = list(p.body)
    while stack:
        n = stack.pop()
        if isinstance(n, ast.Break):
            raise CannotLift(n, "the evaluation loop is left early")
        if not isinstance(n, (ast.For, ast.While, ast.FunctionDef)):
            stack.extend(ast.iter_child_nodes(n))


def _prepares_evaluation(facts: Facts, s: ast.stmt, loop: ast.stmt) -> bool:
    """A counter that the loop uses, or model.eval(): it opens the evaluation."""
    if isinstance(s, ast.Assign):
        stored = {n.id for t in s.targets for n in walk(t, ast.Name)}
        return bool(stored & {n.id for n in walk(loop, ast.Name)}) and not _calls_model(facts, s)
    return is_mode_call(s, "eval") is not None


def _calls_model(facts: Facts, s: ast.stmt) -> bool:
    return any(facts.names.resolve(n.func) is None for n in walk(s, ast.Call))


def _no_loaders(facts: Facts, statements: list[ast.stmt]) -> None:
    for s in statements:
        for n in walk(s):
            if isinstance(n, ast.For) and iterates_loader(facts, n):
                raise CannotLift(n, "another pass over a loader stands in the epoch loop")
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name):
                f = local_function(facts, n.func)
                if f is not None and any(iterates_loader(facts, x) for x in walk(f, ast.For)):
                    raise CannotLift(n, f"{f.name}() passes over a loader from inside another statement")


def flat(facts: Facts, statements: list[ast.stmt]) -> tuple[list[ast.stmt], bool]:
    """The statements with `with torch.no_grad():` opened up, and whether there was one."""
    found: list[ast.stmt] = []
    opened = False
    for s in statements:
        if isinstance(s, ast.With) and all(_is_no_grad(facts, i.context_expr) for i in s.items):
            inner, _ = flat(facts, s.body)
            found += inner
            opened = True
        else:
            found.append(s)
    return found, opened


def _is_no_grad(facts: Facts, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and facts.names.resolve(node.func) in NO_GRAD


def is_without_gradients(facts: Facts, decorator: ast.expr) -> bool:
    """`@torch.no_grad()`, and `@torch.no_grad`."""
    return _is_no_grad(facts, decorator) or facts.names.resolve(decorator) in NO_GRAD

"""Gradients of the samples themselves: of a mean over a share they are longer than of the mean over the whole batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.of_inputs import is_of_inputs
from ..facts.optimizers_made import makes_optimizer
from ..facts.other_files import OtherFile, found_there
from ..facts.script import Facts
from .holders import methods_of
from .nodes import is_call_of, local_function, walk_here
from .recipe import CannotLift, DataPass
from .shown import of_the_batch, reads_part, spread

THE_SAME = ("detach", "clone", "data", "cpu")
GRADIENT = "torch.autograd.grad"


def check_gradients(facts: Facts, train: DataPass) -> ast.AST | None:
    """Raise for a gradient of what the batch gives that is used for more than its sign, there or in what is called: by
    an optimizer of it, too.

    One that is used for its sign is given back.
    """
    named = [*facts.attributes] + [n.name for n in facts.walk(ast.alias)]
    if "grad" in named or _steps_inputs(facts) or any(_takes_gradients(o) for o in facts.others):
        return _check(facts, train.body, of_the_batch(train, set(), {}), {})
    return None


Looked = dict[tuple[ast.AST, frozenset[str]], ast.AST | None]


def _check(facts: Facts, body: list[ast.stmt], part: set[str], looked: Looked) -> ast.AST | None:
    """`part`: the names that hold what the batch gives; `looked`: functions that were looked into, and as what."""
    signed: ast.AST | None = None
    for n in (n for s in body for n in walk_here(s)):
        taken = isinstance(n, ast.Attribute) and n.attr == "grad" and isinstance(n.ctx, ast.Load) and _of(n.value, part)
        if taken or (isinstance(n, ast.Call) and _differentiates_mean(facts, body, n, part)):
            if any(not _only_sign(facts, use) for use in _uses(facts, body, n)):
                raise CannotLift(n, f"`{facts.short(n)}` is the gradient of a mean over the batch")
            signed = n if any(_is_sign(facts, use) for use in _uses(facts, body, n)) else signed
        elif isinstance(n, ast.Call) and makes_optimizer(facts, n) and is_of_inputs(facts, n):
            raise CannotLift(n, f"`{facts.short(n)}` steps by gradients of what the batch gives")
        elif isinstance(n, ast.Call):
            for f, given in _called(facts, n, part):
                key = f, frozenset(given)
                if key not in looked:
                    looked[key] = None  # until it is known, for functions that call themselves
                    looked[key] = _check(facts, f.body, spread(f.body, given, set(), {}), looked)
                signed = looked[key] or signed
            signed = _beyond(facts, n, part, looked) or signed
    return signed


def _beyond(facts: Facts, call: ast.Call, part: set[str], looked: Looked) -> ast.Call | None:
    """The same of a function of another file: the call, where the gradient is used for its sign there."""
    if not any(_takes_gradients(o) for o in facts.others):
        return None
    file, there, f = found_there(facts, call.func) or (None, None, None)
    if file is None or there is None or not isinstance(f, ast.FunctionDef) or not _takes_gradients(file):
        return None
    given = _given([a.arg for a in (*f.args.posonlyargs, *f.args.args)], call, part)
    key = f, frozenset(given)
    if given and key not in looked:
        looked[key] = None
        try:
            looked[key] = _check(there, f.body, spread(f.body, given, set(), {}), looked)
        except CannotLift as why:
            raise CannotLift(call, f"{why.reason}, in {f.name}() of {file.stem}.py") from None
    return call if looked.get(key) is not None else None


def _takes_gradients(file: OtherFile) -> bool:
    return ".grad" in file.text or "import grad" in file.text or ".backward(" in file.text


def _steps_inputs(facts: Facts) -> bool:
    """Whether the file has an optimizer of what a function makes of its arguments: `optim.SGD([delta], lr=0.1)`."""
    return any(is_of_inputs(facts, c) for c in facts.calls_of("step"))


def _called(facts: Facts, call: ast.Call, part: set[str]) -> Iterator[tuple[ast.FunctionDef, set[str]]]:
    """The functions of this file that a call may run, with the parameters that are given what the batch gives."""
    for f in _functions(facts, call.func):
        names = [a.arg for a in (*f.args.posonlyargs, *f.args.args)]
        static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in f.decorator_list)
        if facts.scopes.scope_of(f).is_class and not static:
            names = names[1:]
        if given := _given(names, call, part):
            yield f, given


def _given(names: list[str], call: ast.Call, part: set[str]) -> set[str]:
    """Those of the parameters that are given what the batch gives."""
    args = {k.arg or "": k.value for k in call.keywords} | dict(zip(names, call.args, strict=False))
    given = {name for name, e in args.items() if reads_part(e, part, {}) is not None}
    return set(names) if "" in given or (given and any(isinstance(a, ast.Starred) for a in call.args)) else given


def _functions(facts: Facts, called: ast.expr) -> list[ast.FunctionDef]:
    """A function by its name; else the methods of that name, or what a call of an object runs."""
    f = local_function(facts, called) if isinstance(called, ast.Name) else None
    if f is not None:
        return [f]
    if (facts.names.resolve(called) or "").startswith("torch."):
        return []
    methods = methods_of(facts, called.attr) if isinstance(called, ast.Attribute) else []
    return methods or [m for name in ("forward", "__call__") for m in methods_of(facts, name)]


def _of(node: ast.AST, names: set[str]) -> bool:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name) and node.id in names


def _differentiates_mean(facts: Facts, body: list[ast.stmt], call: ast.Call, part: set[str]) -> bool:
    """`torch.autograd.grad(loss, x)`: not of values that stand for themselves, nor of their sum."""
    if facts.names.resolve(call.func) != GRADIENT or any(k.arg == "grad_outputs" for k in call.keywords):
        return False
    given = {k.arg: k.value for k in call.keywords}
    outputs, inputs = (given.get(k, call.args[i] if len(call.args) > i else None) for i, k in enumerate(OF))
    if outputs is None or inputs is None or len(call.args) > len(OF):
        return False
    made = [outputs]
    if isinstance(outputs, ast.Name):
        assigned = (n for s in body for n in walk_here(s) if isinstance(n, ast.Assign))
        made = [n.value for n in assigned if any(ast.unparse(t) == outputs.id for t in n.targets)]
    summed = bool(made) and all(is_call_of(v, "sum") or _resolves(facts, v, "torch.sum") for v in made)
    return not summed and any(_of(x, part) for x in walk(inputs, ast.Name))


OF = ("outputs", "inputs")


def _resolves(facts: Facts, node: ast.expr, full: str) -> bool:
    return isinstance(node, ast.Call) and facts.names.resolve(node.func) == full


def _uses(facts: Facts, body: list[ast.stmt], node: ast.AST) -> Iterator[ast.AST]:
    """The places where the value is used, through the names of the step that are given it."""
    up = facts.scopes.parents.get(node)
    while isinstance(up, ast.Subscript) or (isinstance(up, ast.Attribute) and up.attr in THE_SAME):
        node, up = up, facts.scopes.parents.get(up)
        if isinstance(up, ast.Call) and up.func is node:
            node, up = up, facts.scopes.parents.get(up)
    names = {t.id for t in up.targets if isinstance(t, ast.Name)} if isinstance(up, ast.Assign) else set()
    if not names or len(names) < len(up.targets):  # type: ignore[union-attr]
        yield node
        return
    for n in (n for s in body for n in walk_here(s)):
        if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load):
            yield n


def _is_sign(facts: Facts, use: ast.AST) -> bool:
    """`x.grad.sign()`, `x.grad.data.sign()`, `torch.sign(grad)`."""
    up = facts.scopes.parents.get(use)
    while isinstance(up, ast.Attribute) and up.attr in THE_SAME:
        use, up = up, facts.scopes.parents.get(up)
        if isinstance(up, ast.Call) and up.func is use:
            use, up = up, facts.scopes.parents.get(up)
    return getattr(up, "attr", "") == "sign" or (isinstance(up, ast.Call) and _resolves(facts, up, "torch.sign"))


def _only_sign(facts: Facts, use: ast.AST) -> bool:
    """`x.grad.sign()`, `torch.sign(grad)`, `x.grad.zero_()`, `x.grad is None`."""
    up = facts.scopes.parents.get(use)
    if isinstance(up, ast.Attribute) and up.attr in ("sign", "zero_", "shape", "dtype", "device"):
        return True
    if isinstance(up, ast.Attribute) and up.attr in THE_SAME:
        call = facts.scopes.parents.get(up)
        return _only_sign(facts, call if isinstance(call, ast.Call) and call.func is up else up)
    if isinstance(up, ast.Call) and facts.names.resolve(up.func) == "torch.sign":
        return True
    return isinstance(up, ast.Compare) and isinstance(up.ops[0], (ast.Is, ast.IsNot))

"""The function or method of the file that a call in a step runs: by its name, by what a name or `self.name` holds."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeGuard

from .arguments import default_of, entry, is_bound
from .batch_operations import LOSS
from .classes import WEIGHTED, Function

if TYPE_CHECKING:
    from .mixing import Run
    from .script import Facts


@dataclass
class Target:
    """`holder`: the class of a method; `first` and `keywords`: what functools.partial gives beforehand."""

    f: Function | ast.Lambda
    holder: ast.ClassDef | None = None
    first: list[ast.expr] = field(default_factory=list)
    keywords: dict[str, ast.expr] = field(default_factory=dict)


def target_of(run: Run, call: ast.Call) -> Target | None:
    """What a call runs, where the file shows it; `self(x)` is forward."""
    func, holder, networks = call.func, run.holder, run.mixing.networks
    network = networks.called(func) if networks is not None else None
    if network is not None:
        f = run.facts.classes.method(network, "forward")
        return Target(f, network) if f is not None else None
    name = "forward" if isinstance(func, ast.Name) and func.id == "self" else getattr(func, "attr", "")
    if holder is not None and (is_own(func) or name == "forward"):
        f = run.facts.classes.method(holder, name)
        if f is not None or name == "forward":
            return Target(f, holder) if f is not None else None
    of_network = networks.method(func) if networks is not None else None
    if of_network is not None:
        return Target(*of_network)
    of_class = _of_class(run, func) or _of_object(run, func)
    return of_class if of_class is not None else _resolved(run, held(run, func) or func)


def _of_class(run: Run, func: ast.expr) -> Target | None:
    """`Net.similarity(a, b)`, `type(self).similarity(a, b)`, `cls.similarity(a, b)`: one without an object."""
    if not isinstance(func, ast.Attribute):
        return None
    named = func.value.id if isinstance(func.value, ast.Name) else ""
    own = [c for c in run.facts.walk(ast.ClassDef) if c.name == named]
    if run.holder is not None and ast.unparse(func.value) in ("type(self)", "self.__class__", "cls"):
        own = [run.holder]
    f = run.facts.classes.method(own[0], func.attr) if len(own) == 1 else None
    return Target(f, own[0]) if f is not None and not is_bound(f) else None


def _of_object(run: Run, func: ast.expr) -> Target | None:
    """`self.pairs.compute(a, b)` after `self.pairs = Pairs()`, of a plain class of the file."""
    if not isinstance(func, ast.Attribute) or not isinstance(func.value, (ast.Name, ast.Attribute)):
        return None
    made = held(run, func.value)
    own = _class_of(run, made) if isinstance(made, ast.Call) else None
    if own is None or own in run.facts.classes.modules:
        return None
    f = run.facts.classes.method(own, func.attr)
    return Target(f, own) if f is not None else None


def _class_of(run: Run, made: ast.Call) -> ast.ClassDef | None:
    name = made.func.id if isinstance(made.func, ast.Name) else None
    own = [c for c in run.facts.walk(ast.ClassDef) if c.name == name] if name is not None else []
    return own[0] if len(own) == 1 else None


def held(run: Run, func: ast.expr) -> ast.expr | None:
    """The expression that a local name, `self.name` or `TABLE["key"]` was given."""
    if isinstance(func, ast.Subscript) and isinstance(func.slice, ast.Constant):
        table = held(run, func.value)
        return entry(table, str(func.slice.value)) if table is not None else None
    if isinstance(func, ast.Name):
        scope = run.facts.scopes.scope_of(func).lookup(func.id)
        values = run.facts.devices.assigned(func.id, scope) if scope is not None else None
        return values[0] if values and len(values) == 1 else None
    if is_own(func):
        made = run.mixing.made.get(func.attr)
        return made[-1] if made else None
    return func if isinstance(func, ast.Call) else None


def makers(run: Run, e: ast.expr, depth: int = 0) -> list[ast.Call]:
    """The calls that may have made what is called: by a name, an attribute, a choice or a key of a ModuleDict."""
    if isinstance(e, ast.Call) or depth > 4:
        return [e] if isinstance(e, ast.Call) else []
    if isinstance(e, ast.IfExp):
        given = [e.body, e.orelse]
    elif is_own(e):
        given = run.mixing.made.get(e.attr, [])
    elif isinstance(e, ast.Name):
        given = [v for v in [held(run, e)] if v is not None]
    elif isinstance(e, ast.Subscript):
        key = getattr(e.slice, "value", None)
        kept = [c.args[0] for c in makers(run, e.value, depth + 1) if len(c.args) == 1]
        given = [v for k in kept if isinstance(key, str) and (v := entry(k, key)) is not None]
    else:
        return []
    return [c for v in given for c in makers(run, v, depth + 1)]


def constants(call: ast.Call, f: Function | ast.Lambda, names: list[str]) -> dict[str, ast.expr]:
    """The parameters of a function that a call gives a number or a text, or that have one by default."""
    given = dict(zip(names, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
    found = {n: given.get(n, default_of(f, n)) for n in (*names, *(a.arg for a in f.args.kwonlyargs))}
    return {n: v for n, v in found.items() if isinstance(v, (ast.Constant, ast.UnaryOp, ast.Tuple))}


def is_own(func: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"


def _resolved(run: Run, e: ast.expr) -> Target | None:
    if isinstance(e, ast.Lambda):
        return Target(e)
    if isinstance(e, ast.Name):
        scope = run.facts.scopes.scope_of(e).lookup(e.id)
        made = scope.stores.get(e.id, []) if scope is not None else []
        return Target(made[0]) if len(made) == 1 and isinstance(made[0], ast.FunctionDef) else None
    if isinstance(e, ast.Call) and run.facts.names.resolve(e.func) in ("torch.compile", "torch.jit.script") and e.args:
        return _resolved(run, e.args[0])
    if isinstance(e, ast.Call) and run.facts.names.resolve(e.func) == "functools.partial" and e.args:
        inner = _resolved(run, e.args[0])
        known = {k.arg: k.value for k in e.keywords if k.arg}
        return Target(inner.f, inner.holder, e.args[1:], known) if inner is not None else None
    if isinstance(e, ast.Attribute):  # `criterion = Nce.of_pairs`, `criterion = Nce().forward`
        return _of_class(run, e) or (_loss_of_file(run, e.value) if e.attr in ("forward", "__call__") else None)
    return _loss_of_file(run, e)


def _loss_of_file(run: Run, made: ast.expr) -> Target | None:
    """`criterion = Pairs()`: what a class runs that has no layers, or that is called a loss."""
    own = _class_of(run, made) if isinstance(made, ast.Call) else None
    if own is None:
        return None
    f = run.facts.classes.method(own, "forward" if own in run.facts.classes.modules else "__call__")
    return Target(f, own) if f is not None and is_loss_class(run.facts, own) else None


def is_loss_class(facts: Facts, own: ast.ClassDef) -> bool:
    """Whether what a class runs is followed as a function is: it has no layers with weights, or is called a loss."""
    module = own in facts.classes.modules
    layers = facts.classes.layers(own).values() if module and not LOSS.search(own.name) else ()
    return not any(WEIGHTED.match(kind) for kind in layers)

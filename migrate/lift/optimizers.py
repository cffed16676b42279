"""Whether a name is shown to be an optimizer or a schedule of torch."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..facts.other_files import found_there
from ..facts.scopes import Scope
from ..facts.script import Facts, once_a_file
from .loaders import unpacked, values_of
from .nodes import is_call_of, local_function, returned

OPTIMIZERS = (
    "torch.optim.",
    "torch_optimizer.",
    "transformers.optimization.",
    "apex.optimizers.",
    "bitsandbytes.optim.",
)
Test = Callable[[str], bool]


def is_optimizer(facts: Facts, at: ast.AST, name: str) -> bool:
    """Whether the name, read at this node, is only ever an optimizer; where its making is out of sight, by its use."""
    if _is(facts, at, name, is_optimizer_name):
        return True
    called = _called(facts, at, name) if _is(facts, at, name, is_optimizer_name, unknown=True) else set()
    return "step" in called and ("zero_grad" in called or _once_shown(facts, at, name))


def is_torch_optimizer(facts: Facts, at: ast.AST, name: str) -> bool:
    """Whether it is only ever one of torch's own, whose step leaves the rates alone."""
    return _is(facts, at, name, lambda full: full.startswith("torch.optim.") and is_optimizer_name(full))


def is_scheduler(facts: Facts, at: ast.AST, name: str) -> bool:
    scope = facts.scopes.scope_of(at).lookup(name)
    return scope is not None and _is_only_scheduler(facts, scope, name)


@once_a_file
def _is_only_scheduler(facts: Facts, scope: Scope, name: str) -> bool:
    return _are(facts, scope, name, is_scheduler_name, False, 0)


def is_plateau(facts: Facts, at: ast.AST, name: str) -> bool:
    """Whether it is only ever torch's schedule on a metric."""
    return _is(facts, at, name, lambda full: full == "torch.optim.lr_scheduler.ReduceLROnPlateau")


def _is(facts: Facts, at: ast.AST, name: str, test: Test, unknown: bool = False, depth: int = 0) -> bool:
    """Whether all values of a name pass the test; with `unknown`, those that this file does not show pass too."""
    scope = facts.scopes.scope_of(at).lookup(name)
    return scope is not None and _are(facts, scope, name, test, unknown, depth)


def _are(facts: Facts, scope: Scope, name: str, test: Test, unknown: bool, depth: int) -> bool:
    if depth > 6:
        return False
    values = values_of(facts, name, scope)
    if not values:
        return unknown
    return all(_makes(facts, v, test, unknown, depth) for v in values)


def _makes(facts: Facts, value: ast.expr, test: Test, unknown: bool, depth: int) -> bool:
    if isinstance(value, ast.Call):
        return _call_makes(facts, value, test, unknown, depth)
    if isinstance(value, ast.IfExp):
        return _makes(facts, value.body, test, unknown, depth) and _makes(facts, value.orelse, test, unknown, depth)
    if isinstance(value, ast.Name):
        return _is(facts, value, value.id, test, unknown, depth + 1)
    if isinstance(value, ast.Attribute):
        values = attribute_values(facts, value)
        return all(_makes(facts, v, test, unknown, depth + 1) for v in values) if values and depth < 6 else unknown
    return unknown and isinstance(value, ast.Subscript)


def _call_makes(facts: Facts, call: ast.Call, test: Test, unknown: bool, depth: int) -> bool:
    full = facts.names.resolve(call.func)
    if full is not None:
        return test(full) or _makes_there(facts, call, test, depth) or (unknown and not full.startswith("torch."))
    f = call.func
    if isinstance(f, ast.Call) and isinstance(f.func, ast.Name) and f.func.id == "getattr" and f.args:
        module = facts.names.resolve(f.args[0])
        return module is not None and test(f"{module}.X")
    if isinstance(f, ast.Name):
        inner = local_function(facts, f)
        if inner is not None:
            values = returned(inner)
            return bool(values) and depth < 6 and all(_makes(facts, r, test, unknown, depth + 1) for r in values)
        if test(f.id):
            return True
    own = _local_class(facts, f)
    return unknown and (own is None or _is_of_torch(facts, own))


def _makes_there(facts: Facts, call: ast.Call, test: Test, depth: int) -> bool:
    """`get_optimizer(name, net)` of another file, all of whose values pass the test."""
    found = found_there(facts, call.func) if facts.others and depth < 6 else None
    there, f = found[1:] if found is not None else (facts, None)
    values = returned(f) if isinstance(f, ast.FunctionDef) else []
    return bool(values) and all(_makes(there, v, test, False, depth + 1) for v in values)


def _local_class(facts: Facts, f: ast.expr) -> ast.ClassDef | None:
    scope = facts.scopes.scope_of(f).lookup(f.id) if isinstance(f, ast.Name) else None
    stores = scope.stores.get(f.id, ()) if scope is not None else ()  # type: ignore[attr-defined]
    return next((s for s in stores if isinstance(s, ast.ClassDef)), None)


def _is_of_torch(facts: Facts, own: ast.ClassDef) -> bool:
    """Whether a class of this file is an optimizer as torch's are, with a step that asks for nothing."""
    steps = [f.args for f in own.body if isinstance(f, ast.FunctionDef) and f.name == "step"]
    asks = any(len(a.args) - len(a.defaults) > 1 or a.vararg or a.kwarg for a in steps)
    if asks or any(isinstance(f, ast.FunctionDef) and f.name == "zero_grad" for f in own.body):
        return False
    for base in own.bases:
        above = _local_class(facts, base)
        if (facts.names.resolve(base) or "").startswith("torch.optim.") or (above and _is_of_torch(facts, above)):
            return True
    return False


def attribute_values(facts: Facts, a: ast.Attribute) -> list[ast.expr]:
    """What the constructor of a class of this file gives `self.a`, through the arguments of its calls."""
    if not isinstance(a.value, ast.Name):
        return []
    owner = _class_around(facts, a)
    if owner is None:
        return []
    values: list[ast.expr] = []
    for store in facts.attributes[a.attr]:
        if isinstance(store.ctx, ast.Load) or _class_around(facts, store) is not owner:
            continue
        parent = facts.scopes.parents.get(store)
        if isinstance(parent, ast.Assign) and store in parent.targets:
            given = [parent.value]
        elif isinstance(parent, ast.Tuple) and isinstance(facts.scopes.parents.get(parent), ast.Assign):
            given = unpacked(facts, parent, store)
        else:
            return []
        if not given:
            return []
        for value in given:
            values += _through_constructor(facts, owner, value)
    return [v for v in values if not is_none(v)] or values  # None stands for what comes later


def is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _through_constructor(facts: Facts, owner: ast.ClassDef, value: ast.expr) -> list[ast.expr]:
    """A parameter of `__init__` stands for what calls of the class pass for it."""
    from ..facts.arguments import argument

    if not isinstance(value, ast.Name):
        return [value]
    f = next((up for up in facts.scopes.ancestors(value) if isinstance(up, ast.FunctionDef)), None)
    if f is None or f.name != "__init__" or value.id not in facts.scopes.by_node[f].params:
        return [value]
    found: list[ast.expr] = []
    for call in facts.walk(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == owner.name:
            with_self = ast.Call(func=call.func, args=[call.func, *call.args], keywords=call.keywords)
            given = argument(with_self, f, value.id)
            if given is not None:
                found.append(given)
    return found


def _class_around(facts: Facts, node: ast.AST) -> ast.ClassDef | None:
    return next((up for up in facts.scopes.ancestors(node) if isinstance(up, ast.ClassDef)), None)


def _once_shown(facts: Facts, at: ast.AST, name: str) -> bool:
    """Whether one of several values is shown to be an optimizer: that of another branch does what it does."""
    scope = facts.scopes.scope_of(at).lookup(name)
    values = values_of(facts, name, scope) if scope is not None else []
    return any(_makes(facts, v, is_optimizer_name, unknown=False, depth=0) for v in values)


def _called(facts: Facts, at: ast.AST, name: str) -> set[str]:
    """Which of `x.zero_grad()` and `x.step()`, both without arguments, the function calls."""
    scope: Scope | None = facts.scopes.scope_of(at).lookup(name)
    called: set[str] = set()
    for read in facts.scopes.reads(name, scope) if scope is not None else ():
        method = facts.scopes.parents.get(read)
        call = facts.scopes.parents.get(method) if method is not None else None
        for wanted in ("step", "zero_grad"):
            if call is not None and is_call_of(call, wanted) and call.func is method:  # type: ignore[attr-defined]
                called.add(wanted)
    return called


def clips_all(facts: Facts, clipped: ast.expr, at: ast.AST, name: str, each: bool) -> bool:
    """Whether `X.parameters()` is what the optimizer of a name was made with, as far as is seen: groups and parts of a
    network have another norm, or another order of its sum. `each`: by value, where X may have more, in any order.
    """
    of_all = _whose(clipped)
    for call in makers(facts, at, name):
        first = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "params"), None)
        if first is None or not is_optimizer_name(facts.names.resolve(call.func) or ""):
            continue
        groups = [_whose(group) for group in (_groups(first) if each else [first])]
        for trained in groups:
            if of_all is None or trained is None or trained[:1] != groups[0][:1]:  # type: ignore[index]
                return False
            if of_all[1:] != trained[1 : len(of_all) if each else None]:
                return False
            scopes = [facts.scopes.scope_of(n).lookup(names[0]) for n, names in ((at, of_all), (first, trained))]
            if of_all[0] != trained[0] and scopes[0] is scopes[1]:
                return False
    return True


def _groups(made: ast.expr) -> list[ast.expr]:
    """The parameters of each group of `[{"params": ...}, ...]`."""
    if not isinstance(made, (ast.List, ast.Tuple)):
        return [made]
    pairs = [dict(zip(map(_text, g.keys), g.values, strict=True)) if isinstance(g, ast.Dict) else {} for g in made.elts]
    return [pair.get("params", made) for pair in pairs] or [made]


def _text(key: ast.expr | None) -> Any:
    return key.value if isinstance(key, ast.Constant) else None


def makers(facts: Facts, at: ast.AST, name: str, depth: int = 0) -> list[ast.Call]:
    """The calls that give a name its values, through parameters, other names and attributes."""
    scope = facts.scopes.scope_of(at).lookup(name)
    values = values_of(facts, name, scope) if scope is not None and depth < 6 else []
    values = [x for v in values for x in (attribute_values(facts, v) if isinstance(v, ast.Attribute) else [v])]
    found = [v for v in values if isinstance(v, ast.Call)]
    return found + [c for v in values if isinstance(v, ast.Name) for c in makers(facts, v, v.id, depth + 1)]


def _whose(parameters: ast.expr) -> list[str] | None:
    """The names of `a.b.parameters()`, without `self`; None for anything else."""
    if not is_call_of(parameters, "parameters"):
        return None
    names = ast.unparse(parameters.func.value).split(".")  # type: ignore[attr-defined]
    names = names[1:] if names[0] == "self" and len(names) > 1 else names
    return names if all(n.isidentifier() for n in names) else None


def trains_loose_tensors(facts: Facts, at: ast.AST, name: str) -> bool:
    """Whether the optimizer is made for tensors of the script's own, which no module holds."""
    from ..facts.placed import MAKES_TENSORS

    scope = facts.scopes.scope_of(at).lookup(name)
    for value in values_of(facts, name, scope) if scope is not None else []:
        if not isinstance(value, ast.Call) or not value.args:
            continue
        first = value.args[0]
        for part in first.elts if isinstance(first, (ast.List, ast.Tuple)) else [first]:
            home = facts.scopes.scope_of(part).lookup(part.id) if isinstance(part, ast.Name) else None
            for made in values_of(facts, part.id, home) if isinstance(part, ast.Name) and home is not None else []:
                if isinstance(made, ast.Call):
                    root = made.func.value if is_call_of(made, "requires_grad_") else made  # type: ignore[attr-defined]
                    if isinstance(root, ast.Call) and facts.names.resolve(root.func) in MAKES_TENSORS:
                        return True
    return False


def is_optimizer_name(full: str) -> bool:
    last = full.split(".")[-1]
    return (full.startswith(OPTIMIZERS) and ".lr_scheduler" not in full) or last in ("AdamW", "Adam", "SGD")


def is_scheduler_name(full: str) -> bool:
    return full.startswith(("torch.optim.lr_scheduler.", "transformers.get_"))

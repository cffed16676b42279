"""Where a DistributedSampler goes: the names that it has, and what each of them is read for."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ..facts.arguments import argument_at
from ..facts.distribution import SAMPLER
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from .sampler_arguments import reads_in_function
from .sampler_dicts import key_of, read_by_key
from .sampler_returns import Place, unpacked

LOADER = "torch.utils.data.DataLoader"


@dataclass
class Use:
    """Every place where one DistributedSampler is named, sorted by what becomes of it."""

    made: list[ast.Call] = field(default_factory=list)
    statements: list[ast.stmt] = field(default_factory=list)  # that bind it
    alternatives: list[ast.expr] = field(default_factory=list)  # what else the name may be
    epochs: list[ast.Expr] = field(default_factory=list)
    tests: list[ast.expr] = field(default_factory=list)
    handed: list[ast.expr] = field(default_factory=list)
    given: list[ast.expr] = field(default_factory=list)  # to functions of the file
    inside: list[ast.expr] = field(default_factory=list)  # read in those
    entries: list[tuple[ast.Dict, str]] = field(default_factory=list)  # of a dictionary of samplers
    restored: list[str] = field(default_factory=list)  # what `shuffle=` says in its place
    returned: list[Place] = field(default_factory=list)  # beside others, and unpacked where that is called
    other: list[ast.expr] = field(default_factory=list)


def use_of(facts: Facts, call: ast.Call) -> Use:
    use = Use([call])
    top: ast.expr = call
    up = facts.scopes.parents[call]
    while isinstance(up, ast.IfExp) and top is not up.test:
        for other in _branches(up.orelse if top is up.body else up.body):
            sampler = isinstance(other, ast.Call) and facts.names.resolve(other.func) == SAMPLER
            (use.made if sampler else use.alternatives).append(other)  # type: ignore[arg-type]
        top, up = up, facts.scopes.parents[up]
    kept = read_by_key(facts, top, up) if isinstance(up, (ast.Dict, ast.DictComp)) else None
    if kept is not None:
        if isinstance(up, ast.Dict):
            use.entries.append((up, str(key_of(up, top))))
        else:
            use.statements.append(kept[0])
        for place in kept[1]:
            _read(facts, place, use)
        use.other += [a for a in use.alternatives if not is_none(a)]
        return use
    target = bound_by(up)
    if isinstance(target, (ast.Name, ast.Attribute)) and isinstance(up, ast.stmt):
        use.statements.append(up)
    if isinstance(target, ast.Name):
        uses_of_name(facts, target, use)
    elif isinstance(target, ast.Attribute):
        uses_of_attribute(facts, target, use)
    if isinstance(up, ast.NamedExpr):
        _read(facts, up, use)
        use.other += [up for a in use.alternatives if not is_none(a)]
    elif not isinstance(target, (ast.Name, ast.Attribute)):
        _read(facts, top, use)
    return use


def bound_by(node: ast.AST | None) -> ast.expr | None:
    """The one target of an assignment: `s = ...`, `s: Sampler = ...`, `(s := ...)`."""
    if isinstance(node, ast.Assign):
        return node.targets[0] if len(node.targets) == 1 else None
    return node.target if isinstance(node, (ast.AnnAssign, ast.NamedExpr)) else None


def uses_of_name(facts: Facts, target: ast.Name, use: Use) -> None:
    scope: Scope | None = facts.scopes.scope_of(target).lookup(target.id)
    taken = scope is facts.scopes.module and target.id in facts.read_elsewhere
    if scope is None or target.id in scope.params or taken:
        use.other.append(target)
        return
    stores = [facts.scopes.parents.get(s) for s in scope.stores[target.id]]
    _bindings(facts, stores, target, use)
    for read in facts.scopes.reads(target.id, scope):
        _read(facts, read, use)


def uses_of_attribute(facts: Facts, target: ast.Attribute, use: Use) -> None:
    same = facts.attributes[target.attr]
    stores = [facts.scopes.parents.get(a) for a in same if not isinstance(a.ctx, ast.Load)]
    _bindings(facts, stores, target, use)
    if target.attr in facts.read_elsewhere:
        use.other.append(target)
    if facts.is_library and not target.attr.startswith("_"):
        users = [c for c in facts.walk(ast.ClassDef) if any(n is target for n in walk(c))]
        if not users:
            use.other.append(target)
    for a in same:
        if isinstance(a.ctx, ast.Load):
            _read(facts, a, use)


def _bindings(facts: Facts, stores: list[ast.AST | None], target: ast.expr, use: Use) -> None:
    made = [*use.made, *use.alternatives]
    for s in stores:
        if bound_by(s) is None:
            if isinstance(s, ast.Assign) and is_none(s.value):
                continue
            use.other.append(target)
            continue
        if s in use.statements or (isinstance(s, ast.NamedExpr) and _branches(s.value)[0] in made):
            continue
        assert isinstance(s, (ast.Assign, ast.AnnAssign, ast.NamedExpr))
        if isinstance(s, ast.NamedExpr):
            _read(facts, s, use)
        else:
            use.statements.append(s)
        for value in _branches(s.value) if s.value is not None else ():
            if isinstance(value, ast.Call) and facts.names.resolve(value.func) == SAMPLER:
                use.made.append(value)
            else:
                use.alternatives.append(value)


def _read(facts: Facts, read: ast.expr, use: Use) -> None:
    parents = facts.scopes.parents
    up = parents[read]
    if isinstance(up, ast.keyword):
        up = parents[up]
    if _is_handed(facts, up, read):
        use.handed.append(read)
    elif isinstance(up, ast.Attribute) and up.attr == "set_epoch":
        call = parents[up]
        holder = parents[call]
        if isinstance(holder, ast.Expr):
            use.epochs.append(holder)
        else:
            use.other.append(read)
    elif (
        isinstance(up, ast.Compare)
        and len(up.ops) == 1
        and isinstance(up.ops[0], (ast.Is, ast.IsNot))
        and is_none(up.comparators[0])
    ):
        use.tests.append(up)
    elif isinstance(up, ast.If) and up.test is read:
        use.tests.append(read)
    elif (isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Not)) or (
        isinstance(up, ast.Call) and isinstance(up.func, ast.Name) and up.func.id in ("isinstance", "hasattr")
    ):
        use.tests.append(up)
    elif (inside := reads_in_function(facts, read)) is not None:
        if any(_is_handed(facts, _holder(facts, r), r) for r in inside) and not _is_only_call(facts, read):
            use.other.append(read)  # what one call wants of the loader, another may not
            return
        use.given.append(read)
        for r in inside:
            if not any(r is known for known in use.inside):
                use.inside.append(r)
                _read(facts, r, use)
    elif (returned := unpacked(facts, read)) is not None:
        _unpack(facts, *returned, use)
    else:
        use.other.append(read)


def _unpack(facts: Facts, places: list[Place], names: list[ast.Name], use: Use) -> None:
    """What the callers of a function do with the sampler that it returns."""
    if all(place in use.returned for place in places):
        return
    use.returned += [place for place in places if place not in use.returned]
    for name in names:
        scope = facts.scopes.scope_of(name).lookup(name.id)
        if (
            scope is None
            or len(scope.stores.get(name.id, ())) > 1
            or (facts.is_library and scope is facts.scopes.module)
        ):
            use.other.append(name)
            continue
        for read in facts.scopes.reads(name.id, scope):
            _read(facts, read, use)


def _holder(facts: Facts, read: ast.expr) -> ast.AST:
    up = facts.scopes.parents[read]
    return facts.scopes.parents[up] if isinstance(up, ast.keyword) else up


def _is_only_call(facts: Facts, read: ast.expr) -> bool:
    """Whether the function that is called with it is called here alone."""
    call = _holder(facts, read)
    f = facts.devices.function_of(call) if isinstance(call, ast.Call) else None
    return f is not None and len(facts.devices.uses_of_function(f)) == 1


def _is_handed(facts: Facts, up: ast.AST, read: ast.expr) -> bool:
    """Whether a DataLoader gets it, at once or with its other keywords."""
    if isinstance(up, ast.Assign):
        return up.value is read and _is_entry(up) and goes_to_loader(facts, up)
    if _in_dict(up, read):
        return _reaches_loader(facts, up) and not _is_second(facts, up)
    if not isinstance(up, ast.Call):
        return False
    if facts.names.resolve(up.func) == "functools.partial":  # partial(DataLoader, sampler=read)
        given = any(k.arg == "sampler" and k.value is read for k in up.keywords)
        return given and len(up.args) == 1 and facts.names.resolve(up.args[0]) == LOADER and _is_last_word(facts, up)
    return is_loader(facts, up) and argument_at(up, "sampler", 3) is read


def is_loader(facts: Facts, call: ast.Call) -> bool:
    """A DataLoader, or what `make = partial(DataLoader, num_workers=2)` makes."""
    if facts.names.resolve(call.func) == LOADER:
        return True
    scope = facts.scopes.scope_of(call.func).lookup(call.func.id) if isinstance(call.func, ast.Name) else None
    values = facts.devices.assigned(call.func.id, scope) if scope is not None else None  # type: ignore[attr-defined]
    made = values[0] if values and len(values) == 1 else None
    if not isinstance(made, ast.Call) or facts.names.resolve(made.func) != "functools.partial":
        return False
    of_loader = len(made.args) == 1 and facts.names.resolve(made.args[0]) == LOADER
    return of_loader and not any(k.arg in ("sampler", "batch_sampler", "shuffle", None) for k in made.keywords)


def _is_second(facts: Facts, made: ast.AST) -> bool:
    """Whether `{**options, "sampler": ...}` may hide another sampler, which would come to light beside `shuffle=`."""
    spread = [v for k, v in zip(made.keys, made.values, strict=True) if k is None] if isinstance(made, ast.Dict) else []
    up = facts.scopes.parents.get(made)
    while isinstance(up, ast.BinOp):
        spread, up = [*spread, up.left], facts.scopes.parents.get(up)  # options | {"sampler": ...}
    return any(_gets_sampler(facts, v) for v in spread if isinstance(v, ast.Name))


def _gets_sampler(facts: Facts, held: ast.Name) -> bool:
    """Whether a dictionary is given a sampler where it is made, or later: `options["sampler"] = ...`."""
    scope = facts.scopes.scope_of(held).lookup(held.id)
    if scope is None:
        return False
    given = [facts.scopes.parents[s] for s in scope.stores.get(held.id, ())]
    for read in facts.scopes.reads(held.id, scope):
        up = facts.scopes.parents[read]
        changes = isinstance(up, ast.Attribute) and up.attr in ("update", "setdefault")
        if changes or (isinstance(up, ast.Subscript) and isinstance(up.ctx, ast.Store)):
            given.append(facts.scopes.parents[up] if changes else up.slice)  # type: ignore[attr-defined]
    return any(
        is_text(n, "sampler") or (isinstance(n, ast.keyword) and n.arg == "sampler") for g in given for n in walk(g)
    )


def _is_last_word(facts: Facts, made: ast.Call) -> bool:
    """Whether the calls of what `partial()` gives leave its sampler as it is."""
    up = facts.scopes.parents.get(made)
    calls = [up] if isinstance(up, ast.Call) and up.func is made else []
    target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    if isinstance(target, ast.Name):
        scope = facts.scopes.scope_of(target).lookup(target.id)
        reads = list(facts.scopes.reads(target.id, scope)) if scope is not None else []
        calls = [c for r in reads if isinstance(c := facts.scopes.parents.get(r), ast.Call) and c.func is r]
        if len(calls) < len(reads):
            return False  # it is handed on
    says = ("sampler", "batch_sampler", "shuffle", None)
    return bool(calls) and not any(k.arg in says for c in calls for k in c.keywords)


def _reaches_loader(facts: Facts, made: ast.AST) -> bool:
    """Whether a dictionary is spread into a DataLoader, at once or by its name."""
    made = _joined(facts, made)
    up = facts.scopes.parents.get(made)
    if isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name):
        scope = facts.scopes.scope_of(up.targets[0]).lookup(up.targets[0].id)
        reads = list(facts.scopes.reads(up.targets[0].id, scope)) if scope is not None else []
        return any(spread_into_loader(facts, r) is not None for r in reads)
    return spread_into_loader(facts, made) is not None


def _is_entry(s: ast.Assign) -> bool:
    """`options["sampler"] = ...`"""
    t = s.targets[0]
    return len(s.targets) == 1 and isinstance(t, ast.Subscript) and is_text(t.slice, "sampler")


def goes_to_loader(facts: Facts, s: ast.Assign) -> bool:
    """Whether the dictionary that a statement gives an entry is only spread into DataLoaders."""
    target = s.targets[0]
    if not (isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)):
        return False
    return bool(loaders_of(facts, target.value))


def loaders_of(facts: Facts, held: ast.expr) -> list[ast.Call]:
    """The DataLoaders that a dictionary is spread into by its name; none where it is read for more than that."""
    scope = facts.scopes.scope_of(held).lookup(held.id) if isinstance(held, ast.Name) else None
    if scope is None or not isinstance(held, ast.Name) or held.id in scope.params:
        return []
    found: list[ast.Call] = []
    for read in facts.scopes.reads(held.id, scope):
        up = facts.scopes.parents.get(read)
        if isinstance(up, ast.Subscript) and isinstance(up.ctx, ast.Store):
            continue
        if isinstance(up, ast.Attribute) and _updates_others(facts.scopes.parents.get(up)):
            continue
        call = spread_into_loader(facts, read)
        if call is None:
            return []
        found.append(call)
    return found


def _updates_others(call: ast.AST | None) -> bool:
    """`options.update(num_workers=2)`, which leaves the sampler and `shuffle` as they are."""
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "update"):
        return False
    return not call.args and not any(k.arg in (None, "sampler", "batch_sampler", "shuffle") for k in call.keywords)


def _joined(facts: Facts, made: ast.AST) -> ast.AST:
    """`common | {"sampler": s}` of its last dictionary, which has the last word."""
    up = facts.scopes.parents.get(made)
    while isinstance(up, ast.BinOp) and isinstance(up.op, ast.BitOr) and up.right is made:
        made, up = up, facts.scopes.parents.get(up)
    return made


def spread_into_loader(facts: Facts, node: ast.AST) -> ast.Call | None:
    k = facts.scopes.parents.get(_joined(facts, node))
    call = facts.scopes.parents.get(k) if isinstance(k, ast.keyword) and k.arg is None else None
    return call if isinstance(call, ast.Call) and is_loader(facts, call) else None


def _branches(value: ast.expr) -> list[ast.expr]:
    return [*_branches(value.body), *_branches(value.orelse)] if isinstance(value, ast.IfExp) else [value]


def is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_text(node: ast.AST | None, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _in_dict(up: ast.AST, read: ast.expr) -> bool:
    """`{"sampler": read}` or `dict(sampler=read)`."""
    if isinstance(up, ast.Dict):
        return any(v is read and is_text(k, "sampler") for k, v in zip(up.keys, up.values, strict=True))
    if isinstance(up, ast.Call) and isinstance(up.func, ast.Name) and up.func.id == "dict":
        return any(k.value is read and k.arg == "sampler" for k in up.keywords)
    return False

"""T1, before what finds moves: a class of the script's own that goes over a loader and moves its batches goes.

    class DeviceDataLoader:
        def __init__(self, dl, device): self.dl, self.device = dl, device
        def __iter__(self):
            for b in self.dl:
                yield to_device(b, self.device)

`loader = DeviceDataLoader(loader, device)` goes, `held_out = DeviceDataLoader(valid, device)` is `held_out = valid`: a
DataLoader, of which the runtime places the batches, and can divide them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument
from ..facts.classes import Function
from ..facts.nodes import walk
from ..facts.script import Facts
from ._whatever_movers import moves_whatever
from .base import Change, Codemod
from .rewrites import take_argument
from .unread_attributes import calls_of_class

WHY = "the runtime places the batches of a loader"


class MovingLoaders(Codemod):
    code = "PTM101"
    name = "moving-loaders"

    def plan(self, facts: Facts) -> Iterator[Change]:
        for c in facts.walk(ast.ClassDef) if "__iter__" in facts.text.text else ():
            loader = _loader_of(facts, c)
            calls = (calls_of_class(facts, c) or []) if loader is not None else []
            init = facts.classes.methods(c).get("__init__")
            given = [argument(call, init, loader, True) for call in calls] if init is not None and loader else []
            first = all(call.args and call.args[0] is g for call, g in zip(calls, given, strict=True))
            if not calls or not first or any(isinstance(g, ast.Starred) for g in given) or _is_looked_into(facts, c):
                continue
            for call in calls:
                yield self._without(facts, call)
            yield Change(c, self.edit(facts, c, f"{c.name} removed: it only moved batches; {WHY}"), None, (c,))

    def _without(self, facts: Facts, call: ast.Call) -> Change:
        s = facts.scopes.parents.get(call)
        if isinstance(s, ast.Assign) and [ast.unparse(t) for t in s.targets] == [ast.unparse(call.args[0])]:
            return Change(s, self.edit(facts, s, f"`{facts.short(s)}` removed: {WHY}"), None, (s,))
        parts = (*call.args[1:], *call.keywords, call.func)
        return Change(call, self.edit(facts, call, f"`{facts.short(call)}`: {WHY}"), take_argument(0), parts)


def _loader_of(facts: Facts, c: ast.ClassDef) -> str | None:
    """The constructor's parameter for the loader, where the class does nothing else than move its batches."""
    methods = facts.classes.methods(c)
    init, goes, size = (methods.get(name) for name in ("__init__", "__iter__", "__len__"))
    if init is None or goes is None or methods.keys() - {"__init__", "__iter__", "__len__"} or c.keywords:
        return None
    if any(ast.unparse(b) != "object" for b in c.bases) or len(c.body) > len(methods) + _documented(c):
        return None
    kept = _kept(init)
    loader = _gone_through(facts, goes)
    if kept is None or loader not in kept:
        return None
    if size is not None and [ast.unparse(s) for s in _statements(size)] != [f"return len(self.{loader})"]:
        return None
    return kept[loader]


def _documented(node: ast.ClassDef | Function) -> bool:
    return ast.get_docstring(node, clean=False) is not None


def _statements(f: Function) -> list[ast.stmt]:
    return f.body[_documented(f) :]


def _kept(init: Function) -> dict[str, str] | None:
    """The attributes that a constructor gives its parameters to, and does no more: `self.dl = dl`."""
    own, found = {a.arg for a in init.args.args}, dict[str, str]()
    for s in _statements(init):
        target, value = (s.targets[0], s.value) if isinstance(s, ast.Assign) and len(s.targets) == 1 else (None, None)
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        if len(targets) != len(values):
            return None
        for t, v in zip(targets, values, strict=True):
            if not (isinstance(t, ast.Attribute) and isinstance(v, ast.Name) and v.id in own):
                return None
            found[t.attr] = v.id
    return found


def _gone_through(facts: Facts, goes: Function) -> str | None:
    """The attribute whose elements `__iter__` gives, moved: `for b in self.dl: yield to_device(b, self.device)`."""
    statements = _statements(goes)
    loop = _loop_of(statements[0]) if len(statements) == 1 else None
    source = loop[1] if loop is not None else None
    if loop is None or not (isinstance(source, ast.Attribute) and facts.classes.is_self(source.value)):
        return None
    target, _, given = loop
    parts = [(target, given)]
    if isinstance(target, ast.Tuple) and isinstance(given, (ast.Tuple, ast.List)):
        parts = list(zip(target.elts, given.elts, strict=False))
        if len(target.elts) != len(given.elts):
            return None
    moved = all(isinstance(t, ast.Name) and _moves(facts, v, t.id) for t, v in parts)
    return source.attr if moved else None


def _loop_of(s: ast.stmt) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    """The target, the source and what is given of `for b in x: yield f(b)`, `yield from (f(b) for b in x)`."""
    if isinstance(s, ast.For) and len(s.body) == 1 and not s.orelse:
        given = s.body[0].value if isinstance(s.body[0], ast.Expr) else None
        if not isinstance(given, ast.Yield) or given.value is None:
            return None
        return s.target, s.iter, given.value
    each = s.value.value if isinstance(s, ast.Expr) and isinstance(s.value, ast.YieldFrom) else None
    if not isinstance(each, ast.GeneratorExp) or len(each.generators) != 1 or each.generators[0].ifs:
        return None
    return each.generators[0].target, each.generators[0].iter, each.elt


def _moves(facts: Facts, value: ast.expr, name: str) -> bool:
    """`to_device(b, self.device)`, `b.to(self.device)`, `[t.to(self.device) for t in b]`"""
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("tuple", "list") and len(value.args) == 1:
        value = value.args[0]
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)) and len(value.generators) == 1:
        part = value.generators[0]
        if not isinstance(part.target, ast.Name) or ast.unparse(part.iter) != name or part.ifs:
            return False
        return _moves(facts, value.elt, part.target.id)
    if not isinstance(value, ast.Call):
        return False
    receiver = facts.devices.moved(value)
    if receiver is not None:
        return ast.unparse(receiver) == name and len(facts.devices.device_arguments(value)) >= len(value.args)
    f = facts.devices.function_of(value)
    gives = bool(value.args) and ast.unparse(value.args[0]) == name
    others = (*value.args[1:], *(k.value for k in value.keywords))
    plain = all(isinstance(a, (ast.Name, ast.Attribute, ast.Constant)) for a in others)
    return gives and plain and isinstance(f, ast.FunctionDef) and moves_whatever(facts, f)


def _is_looked_into(facts: Facts, c: ast.ClassDef) -> bool:
    """Whether something else reads what its objects keep: `loader.dl.dataset`."""
    kept = {a.attr for a in walk(c, ast.Attribute) if facts.classes.is_self(a.value)}
    names = {
        t.id
        for call in facts.walk(ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id == c.name
        for t in getattr(facts.scopes.parents.get(call), "targets", ())
        if isinstance(t, ast.Name)
    }
    within = set(walk(c))
    reads = (a for name in kept for a in facts.attributes.get(name, ()) if a not in within)
    return any(a.attr != "device" or (isinstance(a.value, ast.Name) and a.value.id in names) for a in reads)

"""Devices that objects of the script keep: `self.device = ...` goes with its last use, or is told of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..facts.nodes import walk
from ..facts.script import Facts
from ..report import Note
from ._without_target import without_target
from .base import Change
from .unread_options import read_by_trainer

if TYPE_CHECKING:
    from .remove_unused_devices import RemoveUnusedDevices

# what is read of tensors: something with one of these is no object of the script's own
OF_TENSORS = set(
    "size shape dim ndim dtype view reshape float long half double int bool item detach unsqueeze squeeze new_zeros "
    "new_ones new_tensor new_full numel is_cuda requires_grad grad t T mean sum max min argmax transpose".split()
)
NAMED = ("getattr", "hasattr", "setattr", "delattr", "vars")


def unread_attributes(codemod: RemoveUnusedDevices, facts: Facts, gone: set[ast.AST]) -> Iterator[Change]:
    """Assignments of attributes that held devices, and whose every read is gone."""
    asked = read_by_trainer(facts) if facts.lifting else set()
    for c, name, stores in _lost(facts, gone):
        if name in asked or facts.is_library or _kept_by(facts, c, name, gone) is not None:
            continue
        statements = [facts.scopes.parents.get(s) for s in stores]
        if all(s in gone or _only_chooses(codemod, facts, s) for s in statements):
            for s in statements:
                if isinstance(s, ast.Assign) and s not in gone:
                    yield without_target(codemod, facts, s, gone)


def attributes_still_read(codemod: RemoveUnusedDevices, facts: Facts, gone: set[ast.AST]) -> Iterator[Note]:
    """Attributes that held devices and lost a reader, and stay all the same."""
    asked = read_by_trainer(facts) if facts.lifting else set()
    for c, name, stores in _lost(facts, gone):
        left = [] if name in asked else [s for s in stores if facts.scopes.parents.get(s) not in gone]
        if not left or not any(_only_chooses(codemod, facts, facts.scopes.parents.get(s)) for s in left):
            continue
        reader = _kept_by(facts, c, name, gone)
        why = "other files may read it" if reader is None else f"line {getattr(reader, 'lineno', 1)} may read it"
        if isinstance(reader, ast.Attribute) and _is_own(facts, reader):
            why = f"line {reader.lineno} reads it"
        line, column, _, _ = facts.text.key(left[0])
        yield Note(line, column + 1, codemod.code, f"`self.{name}` stays: {why}")


def calls_of_class(facts: Facts, c: ast.ClassDef) -> list[ast.Call] | None:
    """The calls that make the objects of a class; None where others may make them too."""
    if c.decorator_list or (facts.is_library and facts.scopes.parents.get(c) is facts.tree):
        return None
    reads = list(facts.scopes.reads(c.name, facts.scopes.scope_of(c)))
    ups = [facts.scopes.parents.get(r) for r in reads]
    calls = [u for u, r in zip(ups, reads, strict=True) if isinstance(u, ast.Call) and u.func is r]
    return calls if len(calls) == len(reads) else None


def _lost(facts: Facts, gone: set[ast.AST]) -> Iterator[tuple[ast.ClassDef, str, list[ast.Attribute]]]:
    """Classes, their attributes of which a read is gone, and where those are given."""
    lost = [a for a in facts.walk(ast.Attribute) if a in gone and isinstance(a.ctx, ast.Load) and _is_own(facts, a)]
    seen: set[tuple[ast.ClassDef, str]] = set()
    for a in lost:
        c = _holder(facts, a)
        family = facts.classes.kin(c) if c is not None else []
        if c is None or any((d, a.attr) in seen for d in family):
            continue
        seen.add((c, a.attr))
        given = [n for n in facts.attributes[a.attr] if not isinstance(n.ctx, ast.Load) and _is_own(facts, n)]
        stores = [n for n in given if any(up in family for up in facts.scopes.ancestors(n))]
        if stores:
            yield c, a.attr, sorted(stores, key=lambda n: n.lineno)


def _only_chooses(codemod: RemoveUnusedDevices, facts: Facts, s: ast.AST | None) -> bool:
    return isinstance(s, ast.Assign) and len(s.targets) == 1 and codemod._only_chooses(facts, s.value)


def _kept_by(facts: Facts, c: ast.ClassDef, name: str, gone: set[ast.AST]) -> ast.AST | None:
    """What reads the attribute, or may."""
    family = facts.classes.kin(c)
    for d in family:
        for base in d.bases:
            full = facts.names.resolve(base) or ""
            known = isinstance(base, ast.Name) and base.id in {"object", *(k.name for k in family)}
            if not known and not full.startswith(("torch.nn.", "torch.utils.data.")):
                return d  # the class above may read it
        if any(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for s in d.body
               for n in (walk(s) if isinstance(s, (ast.Assign, ast.AnnAssign)) else ())):  # fmt: skip
            return d
    for a in facts.walk(ast.Attribute):
        if a.attr == "__dict__" and a not in gone:
            return a
        read = a.attr == name and a not in gone and isinstance(a.ctx, ast.Load) and not _is_handed_over(facts, a)
        if read and _may_be_of(facts, a, family):
            return a
    for call in facts.walk(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id in NAMED and call not in gone:
            said = call.args[1] if len(call.args) > 1 else None
            if not isinstance(said, ast.Constant) or said.value == name:
                return call
    return None


def _is_handed_over(facts: Facts, a: ast.Attribute) -> bool:
    """`self.device = settings.device`: it is read for no more than what is asked about."""
    s = facts.scopes.parents.get(a)
    targets = s.targets if isinstance(s, ast.Assign) and s.value is a else []
    return bool(targets) and all(
        isinstance(t, ast.Attribute) and t.attr == a.attr and _is_own(facts, t) for t in targets
    )


def _may_be_of(facts: Facts, a: ast.Attribute, family: list[ast.ClassDef]) -> bool:
    """Whether an attribute may be that of an object of these classes."""
    holder = a.value
    if _is_own(facts, a):
        return _holder(facts, a) in family
    if facts.tensors.is_tensor(holder) or facts.names.resolve(a) is not None:
        return False
    if isinstance(holder, ast.Call) and isinstance(holder.func, ast.Name):
        return holder.func.id in {d.name for d in family}  # of a new one; not next(model.parameters())
    parsed = facts.devices.options.parsed  # `args.device`
    if isinstance(holder, ast.Attribute):
        return holder.attr not in ("weight", "bias", "data", "grad", *parsed)
    if not isinstance(holder, ast.Name):
        return True
    if holder.id in parsed:
        return False
    made = facts.devices.own_movers.class_of(holder)
    if made is not None:
        return made in family
    scope = facts.scopes.scope_of(holder).lookup(holder.id)
    ups = [facts.scopes.parents.get(r) for r in facts.scopes.reads(holder.id, scope)] if scope is not None else []
    read = {u.attr for u in ups if isinstance(u, ast.Attribute)} - {a.attr}
    own = {m for d in family for m in facts.classes.methods(d)}
    own |= {n.attr for d in family for n in walk(d, ast.Attribute) if not isinstance(n.ctx, ast.Load)}
    return bool(read & own) or not read & OF_TENSORS


def _is_own(facts: Facts, a: ast.Attribute) -> bool:
    return isinstance(a.value, ast.Name) and a.value.id == "self" and _holder(facts, a) is not None


def _holder(facts: Facts, node: ast.AST) -> ast.ClassDef | None:
    return next((u for u in facts.scopes.ancestors(node) if isinstance(u, ast.ClassDef)), None)

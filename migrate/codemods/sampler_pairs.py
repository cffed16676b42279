"""T4, first: `train_sampler, test_sampler = DistributedSampler(a), DistributedSampler(b)` is a statement for each.

So is a choice between two tuples, and what `options.update(sampler=..., shuffle=False)` gives.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.distribution import SAMPLER
from ..facts.effects import only_asks
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from ._apart import apart, parts
from .base import Change, Codemod
from .sampler_arguments import draws_all, goes


class SamplerPairs(Codemod):
    code = "PTM401"
    name = "sampler-pairs"

    def plan(self, facts: Facts) -> Iterator[Change]:
        for s in facts.walk(ast.Assign):
            made = [v for _, v in parts(facts, s) if self._is_sampler(facts, v)]
            if made and s.lineno == s.end_lineno:  # all that is told later has the line that it had
                yield self._apart(facts, s, apart())
            elif s.lineno == s.end_lineno and self._chooses(facts, s):
                yield self._apart(facts, s, _choices)
        for update in self._updates(facts):
            yield self._apart(facts, update, _entries)

    def _apart(self, facts: Facts, s: ast.stmt, rewrite: Any) -> Change:
        says = f"`{facts.short(s)}`: each of them has its own, so that a sampler can go"
        return Change(s, self.edit(facts, s, says), rewrite)

    def _is_sampler(self, facts: Facts, value: ast.expr) -> bool:
        if isinstance(value, ast.IfExp):
            return self._is_sampler(facts, value.body) or self._is_sampler(facts, value.orelse)
        return isinstance(value, ast.Call) and facts.names.resolve(value.func) == SAMPLER and not draws_all(value)

    def _chooses(self, facts: Facts, s: ast.Assign) -> bool:
        """`a, b = (DistributedSampler(x), DistributedSampler(y)) if many else (None, None)`"""
        target, choice = s.targets[0], s.value
        if len(s.targets) > 1 or not isinstance(target, ast.Tuple) or not isinstance(choice, ast.IfExp):
            return False
        sides = [x.elts for x in (choice.body, choice.orelse) if isinstance(x, ast.Tuple)]
        names = [t.id for t in target.elts if isinstance(t, ast.Name)]
        if len(sides) < 2 or any(len(x) != len(target.elts) for x in sides) or len(set(names)) < len(target.elts):
            return False
        read = {n.id for n in walk(choice, ast.Name)}
        plain = all(self._is_sampler(facts, v) or isinstance(v, (ast.Constant, ast.Name)) for x in sides for v in x)
        made = any(self._is_sampler(facts, v) for x in sides for v in x)
        return made and plain and not read & set(names) and only_asks(facts.names, choice.test)

    def _updates(self, facts: Facts) -> Iterator[ast.Expr]:
        """`options.update(sampler=s)`, and what else says so of the same dictionary: `options.update(shuffle=True)`."""
        found: dict[tuple[Scope | None, str], list[ast.Expr]] = {}
        given: list[tuple[Scope | None, str]] = []
        for a in facts.attributes.get("update", ()):
            call = facts.scopes.parents.get(a)
            s = facts.scopes.parents.get(call) if isinstance(call, ast.Call) and call.func is a else None
            if not (isinstance(s, ast.Expr) and isinstance(call, ast.Call) and isinstance(a.value, ast.Name)):
                continue
            said = _said(call)
            if not {"sampler", "shuffle"} & set(said) or s.lineno != s.end_lineno:
                continue
            held = facts.scopes.scope_of(a.value).lookup(a.value.id), a.value.id
            found.setdefault(held, []).append(s)
            if "sampler" in said and held not in given and goes(facts, said["sampler"], 0):
                given.append(held)
        for held in given:
            yield from found[held]


def _said(call: ast.Call) -> dict[str, ast.expr]:
    """What `d.update(a=x)` or `d.update({"a": x})` gives, by its keys; nothing where they do not show."""
    made = call.args[0] if len(call.args) == 1 and not call.keywords else None
    if isinstance(made, ast.Dict):
        keys = [getattr(k, "value", None) for k in made.keys]
        values = made.values
    else:
        keys, values = [None if call.args else k.arg for k in call.keywords], [k.value for k in call.keywords]
    return dict(zip(keys, values, strict=True)) if all(isinstance(k, str) for k in keys) else {}  # type: ignore[arg-type]


def _statements(updated: Any, made: list[Any]) -> Any:
    """Small statements in the place of one, on its line."""
    import libcst as cst

    end = cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" "))
    made = [m.with_changes(semicolon=end) for m in made]
    made[-1] = made[-1].with_changes(semicolon=updated.semicolon)
    return cst.FlattenSentinel(made)


def _choices(original: Any, updated: Any) -> Any:
    """`a, b = (w, x) if c else (y, z)` as `a = w if c else y; b = x if c else z`."""
    import libcst as cst

    choice = updated.value
    each = zip(updated.targets[0].target.elements, choice.body.elements, choice.orelse.elements, strict=True)
    made = [
        cst.Assign([cst.AssignTarget(t.value)], choice.with_changes(body=x.value, orelse=y.value)) for t, x, y in each
    ]
    return _statements(updated, made)


def _entries(original: Any, updated: Any) -> Any:
    """`d.update(a=x, b=y)` as `d["a"] = x; d["b"] = y`."""
    import libcst as cst

    call, made = updated.value, []
    if call.args[0].keyword is None:
        given = [(element.key.value, element.value) for element in call.args[0].value.elements]
    else:
        given = [(f'"{argument.keyword.value}"', argument.value) for argument in call.args]
    for key, value in given:
        place = cst.SubscriptElement(cst.Index(cst.SimpleString(key)))
        made.append(cst.Assign([cst.AssignTarget(cst.Subscript(call.func.value, [place]))], value))
    return _statements(updated, made)

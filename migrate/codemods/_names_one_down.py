"""T9: names and parts of a wrapped model, all one level down: `"module.fc" in name`, `name.split(".")[1]`.

Where a loop gives the names of a model that is wrapped in any case, what they are compared with loses its `module.`;
what counts parts, of names or of models, is told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from ..facts.distribution import Distribution
from ..facts.nodes import walk
from ..facts.own_wrapped import OwnWrapped
from ..facts.script import Facts
from ..facts.wrapped import last_name

Going = ast.For | ast.comprehension
NAMED = ("named_parameters", "named_modules", "named_buffers", "state_dict")
PREFIX = "module."
ENDS_SO = re.compile(r"self\.\w*module\b|[\"']\w*module[\"']")  # parts with such a name: `self.gate_module`
COUNTED = ("enumerate", "list", "tuple", "next", "zip", "islice")
SAYS = "nothing wraps the model, whose parts are one level less deep now"


def compared_names(facts: Facts, found: Distribution) -> Iterator[tuple[ast.Constant, ast.expr, str]]:
    """The texts that such names are compared with; what becomes another, and what: all names began with `module.`."""
    if PREFIX not in facts.text.text or not OwnWrapped(facts, found.wrapped).in_any_case:
        return
    names = set(_names(facts, found))
    for c in facts.walk(ast.Constant) if names else ():
        text = str(c.value)
        if not (isinstance(c.value, str) and text.startswith(PREFIX) and len(text) > len(PREFIX)) or facts.is_fixed(c):
            continue
        up = facts.scopes.parents.get(c)
        others: list[ast.expr] = []
        if isinstance(up, ast.Compare) and len(up.ops) == 1:
            others = [up.comparators[0] if c is up.left else up.left]
        elif isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr == "startswith":
            others = [up.func.value]
        new = facts.text.get(c).replace(PREFIX, "", 1)
        if not names.intersection(others):
            continue
        if isinstance(up, ast.Compare) and isinstance(up.ops[0], (ast.In, ast.NotIn)):
            if any(map(ENDS_SO.search, (facts.text.text, *(o.text for o in facts.others)))):
                continue  # "module.fc" is in "gate_module.fc", too
            begins = f"{facts.text.get(others[0])}.startswith({new})"
            yield c, up, begins if isinstance(up.ops[0], ast.In) else f"not {begins}"
        else:
            yield c, c, new


def counted_parts(facts: Facts, found: Distribution) -> Iterator[tuple[ast.expr, str]]:
    """`name.split(".")[1]`, `model.children()`, `enumerate(model.modules())`, and what to say of them."""
    if not OwnWrapped(facts, found.wrapped).in_any_case:
        return
    names = set(_names(facts, found)) if ".split(" in facts.text.text else set()
    for part in facts.walk(ast.Subscript) if names else ():
        cut = part.value
        split = isinstance(cut, ast.Call) and isinstance(cut.func, ast.Attribute) and cut.func.attr == "split"
        if split and cut.func.value in names and _counts_from_the_left(part.slice):  # type: ignore[attr-defined]
            yield part, f"`{facts.short(part)}`: {SAYS}"
    for call in (*_asked(facts, found, "children"), *_asked(facts, found, "named_children")):
        yield call, f"`{facts.short(call)}`: {SAYS}: its one child was the network itself"
    for call in (*_asked(facts, found, "modules"), *_asked(facts, found, "named_modules")):
        up = facts.scopes.parents.get(call)
        if isinstance(up, ast.Call) and (getattr(up.func, "id", "") or getattr(up.func, "attr", "")) in COUNTED:
            yield call, f"`{facts.short(up)}`: {SAYS}: the first of them was the wrapper"


def _asked(facts: Facts, found: Distribution, method: str) -> Iterator[ast.Call]:
    """The calls of a method of what is wrapped where it is read: another function may have a model of that name."""
    for call in found.states(method):
        of = call.func.value  # type: ignore[attr-defined]
        home = facts.scopes.scope_of(of).lookup(of.id) if isinstance(of, ast.Name) else None
        if home is None or of.id in home.params:
            yield call
            continue
        given = [facts.scopes.statement_of(s) for s in home.stores.get(of.id, ())]
        if any(not isinstance(s, ast.Assign) or _may_wrap(found, s) for s in given):
            yield call


def _may_wrap(found: Distribution, s: ast.Assign) -> bool:
    return any(c in found.wrapped or last_name(c) in found.wrapped_names for c in walk(s.value, ast.Call))


def _names(facts: Facts, found: Distribution) -> Iterator[Any]:
    """The reads of what loops give as the names of a wrapped model's parts."""
    calls = {c for method in NAMED for c in _asked(facts, found, method)}
    loops: list[Going] = [*facts.walk(ast.For), *facts.walk(ast.comprehension)]
    for loop in loops if calls else ():
        if not calls.intersection(walk(loop.iter, ast.Call)):
            continue
        target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
        if isinstance(target, ast.Tuple):  # for i, (name, p) in enumerate(...)
            target = target.elts[0]
        elif isinstance(loop.target, ast.Tuple) and isinstance(inner := loop.target.elts[-1], ast.Tuple):
            target = inner.elts[0]
        around = facts.scopes.parents.get(loop) if isinstance(loop, ast.comprehension) else loop
        if isinstance(target, ast.Name) and around is not None:
            yield from (n for n in walk(around, ast.Name) if n.id == target.id and isinstance(n.ctx, ast.Load))


def _counts_from_the_left(part: ast.expr) -> bool:
    first = part.lower if isinstance(part, ast.Slice) else part
    return isinstance(first, ast.Constant) and isinstance(first.value, int)

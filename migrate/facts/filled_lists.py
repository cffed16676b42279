"""What a function fills a list or a dictionary of its own with: tensors that it makes are no batch's, though a name
shows nothing but `[]`.

`xs = []`, `xs.append(torch.tensor(row))`, `xs[0].cuda()`
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from .nodes import walk

if TYPE_CHECKING:
    from .scopes import Scope
    from .script import Facts

ADDS_ONE = ("append", "appendleft", "insert")
ADDS_MANY = ("extend", "update")
COMPREHENSIONS = ast.ListComp | ast.GeneratorExp
LISTS = {"list", "collections.deque"}
DICTIONARIES = {"dict", "collections.defaultdict", "collections.OrderedDict"}
Contents = dict[tuple["Scope", str], list[ast.expr]]


class Held(NamedTuple):
    elements: list[ast.expr]
    in_part: bool  # whether one that is made counts for all: a dictionary has others under other keys


class Filled:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def held(self, name: str, scope: Scope) -> Held | None:
        """What a function puts into its own list or dictionary of a name; None where it is none of these."""
        if name in scope.params or (scope, name) not in self._contents:
            return None
        began = [v for s in scope.stores.get(name, ()) if (v := self._value(s)) is not None]
        elements = [e for v in self._contents[scope, name] for e in _parts(v)]
        elements = [e for e in elements if not isinstance(e, ast.Constant) and not _reads(e, name)]
        if any(self._is_of(v, ast.List, LISTS) for v in began):
            return Held(elements, True)
        return Held(elements, False) if any(self._is_of(v, ast.Dict, DICTIONARIES) for v in began) else None

    @cached_property
    def _contents(self) -> Contents:
        """What is put into the names of a file: by methods, under an index, and with `+=`."""
        found: Contents = defaultdict(list)
        for method in (*ADDS_ONE, *ADDS_MANY):
            for call in self.facts.calls_of(method):
                if call.args and isinstance(call.func, ast.Attribute):
                    many = method in ADDS_MANY
                    self._note(found, call.func.value, _elements(call.args[-1]) if many else [call.args[-1]])
        for s in self.facts.walk(ast.Assign):
            for target in s.targets:
                if isinstance(target, ast.Subscript):
                    self._note(found, target.value, [s.value])
                elif isinstance(target, ast.Name):
                    self._note(found, target, _elements(s.value))
        for more in self.facts.walk(ast.AugAssign):
            self._note(found, more.target, _elements(more.value))
        return dict(found)

    def _note(self, found: Contents, holder: ast.expr, values: list[ast.expr]) -> None:
        if not values or not isinstance(holder, ast.Name):
            return
        scope = self.facts.scopes.scope_of(holder).lookup(holder.id)
        if scope is not None:
            found[scope, holder.id] += values

    def _value(self, store: ast.AST) -> ast.expr | None:
        """What an assignment gives a name, one of a pair too."""
        up = self.facts.scopes.parents.get(store)
        if isinstance(up, (ast.Assign, ast.AnnAssign)):
            return up.value
        whole = self.facts.scopes.parents.get(up) if isinstance(up, ast.Tuple) else None
        if not isinstance(up, ast.Tuple) or not isinstance(whole, ast.Assign) or not isinstance(whole.value, ast.Tuple):
            return None
        pairs = zip(up.elts, whole.value.elts, strict=False)
        return next((value for target, value in pairs if target is store), None)

    def _is_of(self, value: ast.expr, display: type[ast.expr], makers: set[str]) -> bool:
        """`[]`, `[None] * 3`, `list()`"""
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
            return any(isinstance(side, display) for side in (value.left, value.right))
        if isinstance(value, ast.Call):
            made = self.facts.names.resolve(value.func) or getattr(value.func, "id", "")
            return made in makers
        return isinstance(value, display) or (display is ast.List and isinstance(value, ast.ListComp))


def _reads(value: ast.expr, name: str) -> bool:
    """`xs[0].cuda()`, which is in it again: what it was decides."""
    return any(n.id == name for n in walk(value, ast.Name))


def _elements(value: ast.expr) -> list[ast.expr]:
    """What a list or a dictionary is written with."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Add)):
        return [*_elements(value.left), *_elements(value.right)]
    if isinstance(value, ast.List):
        return value.elts
    if isinstance(value, ast.Dict):
        return value.values
    return [value.elt] if isinstance(value, COMPREHENSIONS) else []


def _parts(value: ast.expr) -> list[ast.expr]:
    """`x` and `y` of an element `(x, y)`."""
    return [p for e in value.elts for p in _parts(e)] if isinstance(value, (ast.Tuple, ast.List)) else [value]

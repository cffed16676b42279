"""Tensors that an object keeps in a list or a dictionary, or that its class has: no module moves those.

`self.anchors = [torch.ones(3)]`, `self.masks["a"] = torch.ones(3)`, `COLORS = torch.eye(3)` in a class.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from .filled_lists import ADDS_MANY, ADDS_ONE
from .gone_through import drawn_from

if TYPE_CHECKING:
    from .script import Facts

DISPLAYS = {"list", "tuple", "dict"}


class KeptMade:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def in_attribute(self, holder: ast.ClassDef, name: str, values: list[ast.expr]) -> bool:
        """Whether what is in the list or the dictionary of an attribute is made here; `values`: what it is given."""
        if self.written(values):
            return True
        made = self.facts.tensors.made
        put = self._put.get((holder, name), [])
        parts = [e for v in put for e in (_elements(v) or [v])]
        if any(isinstance(v, ast.List) for v in values):
            return any(made(e) for e in parts)
        return bool(parts) and all(made(e) for e in parts)

    def written(self, values: list[ast.expr]) -> bool:
        """Whether a list is written with one that is made here; a dictionary may have others under other keys."""
        made = self.facts.tensors.made
        return any((all if _is_dictionary(v) else any)(map(made, parts)) for v in values if (parts := _elements(v)))

    def under_key(self, node: ast.Subscript) -> bool:
        """`self.masks["a"]` of `self.masks = {"a": torch.ones(3), "n": 3}`, whatever the other keys have."""
        of, key = node.value, node.slice
        if not isinstance(of, ast.Attribute) or not isinstance(key, ast.Constant):
            return False
        holder = self._class_of(of.value)
        given = self.facts.devices.attribute_values.get(of.attr, ())
        own = (v for v in given if holder is not None and holder in self.facts.scopes.ancestors(v))
        made = [self.facts.tensors.made(e) for v in own for k, e in _pairs(v) if k == key.value]
        return bool(made) and all(made)

    def of_class(self, node: ast.Attribute) -> list[ast.expr]:
        """What the body of a class gives a name that is asked for: `self.COLORS`, `Net.COLORS`."""
        holder = self._class_of(node.value)
        scope = self.facts.scopes.by_node.get(holder) if holder is not None else None
        stores = scope.stores.get(node.attr, ()) if scope is not None else ()
        given = (self.facts.scopes.parents.get(s) for s in stores)
        return [s.value for s in given if isinstance(s, (ast.Assign, ast.AnnAssign)) and s.value is not None]

    def drawn(self, around: ast.For | ast.AsyncFor | ast.comprehension, store: ast.AST) -> ast.expr | None:
        """The attribute of `self` that holds what a loop or a comprehension gives a name, in `items()` too."""
        over = drawn_from(self.facts, around, store)
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and not over.args:
            pair = around.target.elts if isinstance(around.target, ast.Tuple) else []
            valued = over.func.attr == "values" or (over.func.attr == "items" and len(pair) == 2 and store is pair[1])
            over = over.func.value if valued else None
        return over if isinstance(over, ast.Attribute) and self._class_of(over.value) is not None else None

    def _class_of(self, node: ast.expr) -> ast.ClassDef | None:
        if not isinstance(node, ast.Name):
            return None
        if node.id in ("self", "cls"):
            return next((up for up in self.facts.scopes.ancestors(node) if isinstance(up, ast.ClassDef)), None)
        scope = self.facts.scopes.scope_of(node).lookup(node.id)
        made = scope.stores.get(node.id, []) if scope is not None else []
        return made[0] if len(made) == 1 and isinstance(made[0], ast.ClassDef) else None

    @cached_property
    def _put(self) -> dict[tuple[ast.ClassDef, str], list[ast.expr]]:
        """What is put into attributes of `self`: by methods, and under an index."""
        found: dict[tuple[ast.ClassDef, str], list[ast.expr]] = defaultdict(list)
        targets = ((t, s.value) for s in self.facts.walk(ast.Assign) for t in s.targets)
        put = [(t.value, value) for t, value in targets if isinstance(t, ast.Subscript)]
        for method in (*ADDS_ONE, *ADDS_MANY):
            for call in self.facts.calls_of(method):
                if call.args and isinstance(call.func, ast.Attribute):
                    put.append((call.func.value, call.args[-1]))
        for holder, value in put:
            if isinstance(holder, ast.Attribute) and (c := self._class_of(holder.value)) is not None:
                found[c, holder.attr].append(value)
        return found


def _is_dictionary(value: ast.expr) -> bool:
    by_call = isinstance(value, ast.Call) and getattr(value.func, "id", "") == "dict"
    return by_call or isinstance(value, (ast.Dict, ast.DictComp))


def _pairs(value: ast.expr) -> list[tuple[object, ast.expr]]:
    """The keys that a dictionary is written with, and what is under each."""
    if isinstance(value, ast.Dict):
        return [(k.value, e) for k, e in zip(value.keys, value.values, strict=True) if isinstance(k, ast.Constant)]
    given = value.keywords if isinstance(value, ast.Call) and _is_dictionary(value) else ()
    return [(k.arg, k.value) for k in given if k.arg is not None]


def _elements(value: ast.expr) -> list[ast.expr]:
    """What a list or a dictionary is written with, at any depth."""
    parts: list[ast.expr] = []
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        parts = value.elts
    elif isinstance(value, ast.Dict):
        parts = value.values
    elif isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        parts = [value.elt]
    elif isinstance(value, ast.DictComp):
        parts = [value.value]
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in DISPLAYS:
        parts = [*value.args, *(k.value for k in value.keywords)] if value.func.id == "dict" else []
        parts += [e for a in value.args for e in _elements(a)]
    return [e for p in parts for e in (_elements(p) or [p])]

"""The losses that a step takes out of what holds them: a tuple of a function, a dictionary, an object, a loop."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from functools import cached_property

from ..facts.nodes import walk
from .counted import Counted
from .criteria import Called, Criteria
from .loss_parts import Key, constructed, element, key_of, of_each, same_places, sets


class Parts(Counted, ABC):
    """What gives the names of a step their values, as wholes and in parts; the reductions are a subclass's."""

    criteria: Criteria
    deep = 0

    @abstractmethod
    def kind(self, e: ast.expr) -> str | None:
        """What an expression is over the samples: "mean", "sum", or None where nothing shows it."""

    @abstractmethod
    def either(self, node: ast.AST, kinds: list[str | None]) -> str | None:
        """What several are that may stand for one; CannotLift where some are means and others sums."""

    @abstractmethod
    def of_name(self, node: ast.Name) -> str | None:
        """`kind` of what a name has where it is read."""

    @abstractmethod
    def repeated(self, node: ast.AST, kind: str | None, through: list[ast.expr]) -> str | None:
        """What is added up in loops that go through these."""

    @abstractmethod
    def when_called(self, what: Called, call: ast.Call, key: Key | None = None) -> str | None:
        """What a call gives of what it runs; `key`: which part of that."""

    def gives(self, name: str) -> list[tuple[ast.Assign | ast.AugAssign, ast.stmt, ast.expr, Key | None]]:
        """The assignments that give a name its value, in order; and which part of a value that is."""
        whole = [(n, s, value, None) for n, s, value in self.stored.get(name, ())]
        parts = self._unpacked.get(name)
        return sorted([*whole, *parts], key=lambda g: (g[0].lineno, g[0].col_offset)) if parts else [*whole]

    @cached_property
    def _unpacked(self) -> dict[str, list[tuple[ast.Assign | ast.AugAssign, ast.stmt, ast.expr, Key | None]]]:
        """By name: the assignments that give it a part of a value, `loss, out = f(x)`, and which."""
        found: dict[str, list[tuple[ast.Assign | ast.AugAssign, ast.stmt, ast.expr, Key | None]]] = {}
        for n, s in self._assignments:
            for t in n.targets if isinstance(n, ast.Assign) else ():
                if not isinstance(t, (ast.Tuple, ast.List)) or isinstance(n.value, (ast.Tuple, ast.List)):
                    continue
                star = next((i for i, x in enumerate(t.elts) if isinstance(x, ast.Starred)), len(t.elts))
                for i, x in enumerate(t.elts):
                    if isinstance(x, ast.Name):
                        found.setdefault(x.id, []).append((n, s, n.value, i if i < star else i - len(t.elts)))
        return found

    @cached_property
    def each(self) -> dict[str, list[tuple[ast.For | ast.comprehension, ast.expr]]]:
        """By name: the loops and comprehensions that give it one value after the other, and what holds these."""
        found: dict[str, list[tuple[ast.For | ast.comprehension, ast.expr]]] = {}
        for n, _ in self.nodes():
            if isinstance(n, (ast.For, ast.comprehension)):
                for name in dict.fromkeys(t.id for t in walk(n.target, ast.Name)):
                    if (holder := of_each(n.target, name, n.iter)) is not None:
                        found.setdefault(name, []).append((n, holder))
        return found

    @cached_property
    def held(self) -> dict[str, list[tuple[ast.AST, ast.stmt, ast.expr]]]:
        """By name: what puts values into lists and dictionaries, the statements of the body, and the values."""
        found: dict[str, list[tuple[ast.AST, ast.stmt, ast.expr]]] = {}
        for n, s in self.nodes():
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "append" and n.args:
                holder, value = n.func.value, n.args[0]
            elif isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add) and isinstance(n.target, ast.Subscript):
                holder, value = n.target.value, n.value
            elif isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Subscript):
                holder, value = n.targets[0].value, n.value
            else:
                continue
            if isinstance(holder, ast.Name):
                found.setdefault(holder.id, []).append((n, s, value))
        return found

    def of_each(self, node: ast.Name) -> str | None:
        """`for loss in losses.values()`: what they all are."""
        around = set(self.facts.scopes.ancestors(node))
        held = [h for n, h in self.each.get(node.id, ()) if n in around or self.facts.scopes.parents.get(n) in around]
        return self.either(node, [self.kind(h) for h in held]) if held and self.deep < 12 else None

    def part(self, e: ast.expr, key: Key) -> str | None:
        """`kind` of a part of what is several values together, such as what a function gives back."""
        one, cut = element(e, key), same_places(e)
        if one is not None:
            return self.kind(one)
        if cut is not None:
            return self.part(cut, key)
        if isinstance(e, ast.IfExp):
            return self.either(e, [self.part(e.body, key), self.part(e.orelse, key)])
        if isinstance(e, ast.Name) and self.deep < 12:
            return self._part_of_name(e, key)
        if not isinstance(e, ast.Call):
            return self.kind(e)
        if called := self.followed(e):
            return self.either(e, [self.when_called(what, e, key) for what in called])
        held = constructed(self.facts, e, key)
        return self.kind(held) if held is not None else self.kind(e)

    def _part_of_name(self, name: ast.Name, key: Key) -> str | None:
        given = [g for g in self.gives(name.id) if g[0].lineno <= name.lineno and g[2] is not name]
        if not given and name.id in self.given:
            giver, e = self.given[name.id]
            assert isinstance(giver, Parts)
            return giver.part(e, key)
        again = any(x.id == name.id for _, _, value, _ in given for x in walk(value, ast.Name))
        if again or any(isinstance(n, ast.AugAssign) or k is not None for n, _, _, k in given):
            return self.of_name(name)
        before, self.deep = self.deep, self.deep + 1
        try:
            found = self.either(name, [self.part(value, key) for _, _, value, _ in given])
        finally:
            self.deep = before
        return found or self.appended(name.id, key)

    def followed(self, call: ast.Call) -> list[Called]:
        """The functions that a call runs, of this file or of another."""
        full = self.facts.names.resolve(call.func)
        if full is None:
            return self.criteria.called(call.func)
        return self.criteria.elsewhere(call.func)[:1] if not full.startswith("torch.") else []

    def appended(self, name: str, key: Key | None = None) -> str | None:
        """`losses.append(loss)`, `losses["a"] = loss`: what a list or a dictionary holds; what it has at `key`."""
        held = self.held.get(name)
        if held is None:
            return None
        held = [h for h in held if key is not None and sets(h[0]) == key] or held
        kinds = [self.repeated(n, self.kind(value), self.loops(n, s)) for n, s, value in held]
        return self.either(held[-1][0], kinds)

    def of_element(self, e: ast.Subscript) -> str | None:
        key = key_of(e.slice)
        if isinstance(e.value, ast.Call):
            return self.part(e.value, key) if key is not None and self.followed(e.value) else None
        if not isinstance(e.value, ast.Name) or self.value(e.value).kind == "plain":
            return None
        return self.of_name(e.value) if key is None else self.part(e.value, key)

    def of_attribute(self, e: ast.Attribute) -> str | None:
        """`out.loss` of an object that is made here, or in a function that is called; `loss.data`."""
        if e.attr == "data":
            return self.kind(e.value)
        made: list[ast.expr] = [e.value]
        if isinstance(e.value, ast.Name):
            made = [value for n, _, value, k in self.gives(e.value.id) if k is None and n.lineno <= e.lineno]
        objects = [(c, self.followed(c)) for c in made if isinstance(c, ast.Call)]
        kinds = [self.when_called(what, c, e.attr) for c, called in objects for what in called]
        held = [h for c, called in objects if not called and (h := constructed(self.facts, c, e.attr)) is not None]
        return self.either(e, [*kinds, *(self.kind(h) for h in held)])

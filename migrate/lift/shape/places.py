"""Where in its data a loop cuts a batch, by the number that it counts in: `X[i:i + size]`, `X[order[i:i + size]]`."""

from __future__ import annotations

import ast
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import cast

from ...facts.nodes import walk
from ...facts.script import Facts
from ..loaders import values_of
from ..nodes import pairs
from ..reads import stored
from ..splice import Splice

LOOPS = (ast.For, ast.While)


@dataclass(frozen=True)
class Place:
    """`size` and `order` as they are spelled; `by_number`: from `number * size`; `ends`: no further than that."""

    size: str
    order: str | None = None
    by_number: bool = False
    ends: str | None = None


class Places:
    """Of one loop, with the statements that name places (`start = i * size`, `rows = order[start:end]`)."""

    def __init__(self, facts: Facts, loop: ast.For, number: str):
        self.facts, self.loop, self.number = facts, loop, number
        self.values: dict[str, ast.expr] = {}
        self.steps: list[ast.stmt] = []  # that name them
        self.read: set[int] = set()  # the names of orders, as places read them
        for s in loop.body:
            self._take(s)

    def _take(self, s: ast.stmt) -> None:
        if not isinstance(s, ast.Assign) or len(s.targets) != 1:
            return
        named = {t.id: v for t, v in pairs(s) if isinstance(t, ast.Name) and self._names_a_place(t, v)}
        if len(named) == len(pairs(s)):
            self.values.update(named)
            self.steps.append(s)

    def _names_a_place(self, t: ast.Name, v: ast.expr) -> bool:
        once = sum(n.id == t.id and isinstance(n.ctx, ast.Store) for n in walk(self.loop, ast.Name)) == 1
        if not once or not self._leads(v):
            return False
        if not isinstance(v, ast.Subscript):
            return self._counts(v)
        uses = [self.facts.scopes.parents.get(n) for n in walk(self.loop, ast.Name) if n.id == t.id and n is not t]
        return bool(uses) and all(isinstance(up, ast.Subscript) and spells(first_of(up), t.id) for up in uses)

    def _counts(self, v: ast.expr) -> bool:
        """Whether a value is arithmetic on the number: `min((i + 1) * size, len(X))`."""
        if isinstance(v, ast.Call):
            return ast.unparse(v.func) == "min" and len(v.args) == 2
        if isinstance(v, ast.BinOp):
            return self._counts(v.left) or self._counts(v.right)
        return isinstance(v, ast.Name) and (v.id == self.number or v.id in self.values)

    def _leads(self, v: ast.expr) -> bool:
        """Whether a value comes from the loop's number."""
        return any(n.id == self.number or n.id in self.values for n in walk(v, ast.Name))

    # -- places -----------------------------------------------------------------------------------------------------

    def of(self, part: ast.Subscript) -> Place | None:
        """Where a subscript cuts; of one that the number leads to in another way, a place that is like no other."""
        first, rest = first_of(part), rest_of(part)
        if not self._leads(part.slice):
            return None
        if all(spells(one, ":") for one in rest):
            if isinstance(first, ast.Slice):
                return self._sliced(first) or _other(part)
            if isinstance(first, ast.Name) and first.id in self.values:
                first = self.values[first.id]
            if isinstance(first, ast.Subscript) and isinstance(first.value, ast.Name):
                by = first_of(first)
                place = self._sliced(by) if isinstance(by, ast.Slice) else None
                if place is not None:
                    self.read.add(id(first.value))
                    return replace(place, order=first.value.id)
        return _other(part)

    def is_step(self, part: ast.Subscript) -> bool:
        """Whether it is the part of an order, by which the data is cut."""
        return id(part.value) in self.read or self.facts.scopes.statement_of(part) in self.steps

    def _sliced(self, s: ast.Slice) -> Place | None:
        if s.step is not None or s.lower is None or s.upper is None:
            return None
        lower, upper, ends = self._written_out(s.lower), self._written_out(s.upper), None
        args = upper.args if isinstance(upper, ast.Call) and ast.unparse(upper.func) == "min" else []
        if len(args) == 2:
            upper, ends = args[0], ast.unparse(args[1])
        number = self.number
        if ast.unparse(lower) == number:
            size = _rest(upper, ast.Add, number)
            return Place(size, ends=ends) if size is not None and self._is_size(size) else None
        size = _rest(lower, ast.Mult, number)
        if size is None or not self._is_size(size):
            return None
        next_one = _rest(upper, ast.Mult, f"{number} + 1"), _rest(upper, ast.Add, ast.unparse(lower))
        return Place(size, None, True, ends) if size in next_one else None

    def _is_size(self, size: str) -> bool:
        """Whether it is a name, an attribute or a number, that the loop does not set."""
        node = ast.parse(size, mode="eval").body
        plain = all(isinstance(n, (ast.Name, ast.Attribute, ast.Constant, ast.expr_context)) for n in walk(node))
        return plain and not stored(self.loop.body) & {n.id for n in walk(node, ast.Name)}

    def _written_out(self, v: ast.expr) -> ast.expr:
        """A value without the names of places."""
        values = self.values

        class Written(ast.NodeTransformer):
            def visit_Name(self, n: ast.Name) -> ast.expr:
                return self.visit(deepcopy(values[n.id])) if n.id in values else n

        return cast(ast.expr, Written().visit(deepcopy(v)))

    def value_of(self, name: str) -> str | None:
        """What the one value of a name is, as it is spelled."""
        if not name.isidentifier():
            return None
        scope = self.facts.scopes.scope_of(self.loop).lookup(name)
        values = values_of(self.facts, name, scope) if scope is not None and name not in scope.params else []
        return ast.unparse(values[0]) if len(values) == 1 else None

    # -- what is left of the loop -----------------------------------------------------------------------------------

    def go(self, gone: list[ast.stmt]) -> bool:
        """Whether those statements can go: each has lines of its own, and nothing else reads what they name."""
        splice, left = Splice(self.facts.text), [s for s in self.loop.body if s not in gone]
        if any(splice.shares_a_line(s) for s in gone):
            return False
        slices = {id(n) for part in walk(self.loop, ast.Subscript) for n in walk(part.slice)}
        return all(
            n.id not in self.values or id(n) in slices for s in left for n in walk(s, ast.Name) if s not in self.steps
        )

    def ends_here(self) -> bool:
        """Whether nothing outside reads the number or a place; another loop that sets the name has its own."""
        scope, inside = self.facts.scopes.scope_of(self.loop), {id(n) for n in walk(self.loop)}
        around = set(self.facts.scopes.ancestors(self.loop))
        for name in (self.number, *self.values):
            for n in self.facts.scopes.reads(name, scope):
                own = (u for u in self.facts.scopes.ancestors(n) if isinstance(u, LOOPS) and u not in around)
                if id(n) not in inside and not any(name in stored([loop]) for loop in own):
                    return False
        return True

    def _numbers(self, gone: list[ast.stmt]) -> list[ast.Name]:
        slices = {id(n) for part in walk(self.loop, ast.Subscript) for n in walk(part.slice)}
        left = [s for s in self.loop.body if s not in gone]
        return [n for s in left for n in walk(s, ast.Name) if n.id == self.number and id(n) not in slices]

    def number_read(self, gone: list[ast.stmt]) -> bool:
        """Whether the loop reads its number for more than places."""
        return bool(self._numbers(gone))

    def may_count(self, gone: list[ast.stmt]) -> bool:
        """Whether what is read is a count of steps: asked by an `if`, or shown."""
        for n in self._numbers(gone):
            child: ast.AST = n
            for up in self.facts.scopes.ancestors(n):
                if isinstance(up, ast.Expr) or (isinstance(up, ast.If) and child is up.test):
                    break
                if isinstance(up, ast.stmt) or up is self.loop:
                    return False
                child = up
        return True


def first_of(part: ast.Subscript) -> ast.expr:
    return part.slice.elts[0] if isinstance(part.slice, ast.Tuple) and part.slice.elts else part.slice


def rest_of(part: ast.Subscript) -> list[ast.expr]:
    return part.slice.elts[1:] if isinstance(part.slice, ast.Tuple) else []


def spells(node: ast.expr, text: str) -> bool:
    return ast.unparse(node) == text


def _other(part: ast.Subscript) -> Place:
    return Place(ast.unparse(part))


def _rest(v: ast.expr, by: type[ast.operator], one: str) -> str | None:
    """`size` of `i + size`, for i."""
    if not isinstance(v, ast.BinOp) or not isinstance(v.op, by):
        return None
    left, right = ast.unparse(v.left), ast.unparse(v.right)
    return right if left == one else left if right == one else None

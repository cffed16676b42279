"""What a method keeps in its object of what it is given, and whether it gives back what is kept there.

`self.x` is looked at as a variable of that name: what may be read before a call has surely written it was kept by an
earlier one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from copy import deepcopy

from ..facts.arguments import is_static
from ..facts.nodes import children
from ..facts.script import Facts, once_a_file
from .nodes import walk_here
from .reads import exposed, stored

PUTS = {
    "append", "appendleft", "extend", "extendleft", "insert", "put", "put_nowait", "push", "add", "update",
    "copy_", "add_", "lerp_",
}  # fmt: skip
SIZES = {"shape", "dtype", "device", "ndim"}
COUNTS = {"len", "size", "dim", "numel", "type", "isinstance", "time"}  # what these give is no sample
DEPTH = 3  # of methods that call methods


class Method:
    """A method of a class, with `self.x` as the variable `self.x`."""

    def __init__(self, facts: Facts, holder: ast.ClassDef, f: ast.FunctionDef) -> None:
        self.facts, self.holder, self.f = facts, holder, f
        first, *self.parameters = [a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)]
        self.body = [_Attributes(first).visit(s) for s in deepcopy(f.body)]
        self.before = {n for n in exposed(self.body) if n.startswith("self.")}  # what an earlier call may have kept

    @staticmethod
    def of(facts: Facts, c: ast.ClassDef, name: str) -> list[Method]:
        """The method of that name, of the class or a base in its file; none of a module."""
        found = None if c in facts.classes.modules else _method(facts, c, name)
        return [found] if found is not None else []

    def keeps(self, given: set[str], depth: int = 0) -> set[str]:
        """The attributes that get what these parameters hold."""
        found = flows(self.body, given)
        kept = {n for n in found if n.startswith("self.")}
        for call, other in self._others():
            if depth < DEPTH and any(reads(a, found) for a in (*call.args, *call.keywords)):
                kept |= other.keeps(set(other.parameters), depth + 1)
        return kept

    def gives_back(self, kept: set[str], depth: int = 0) -> bool:
        """Whether it returns what comes from these attributes."""
        asked = {f"self.{m.f.name}" for _, m in self._others() if depth < DEPTH and m.gives_back(kept, depth + 1)}
        found = flows(self.body, (kept & self.before) | asked)
        given = (n for s in self.body for n in walk_here(s) if isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)))
        return any(reads(n, found) for n in given)

    def begins_anew(self) -> set[str]:
        """The attributes that it sets without a look at what they were: `self.x = []`."""
        cleared = {
            n.func.value.id
            for s in self.body
            for n in walk_here(s)
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "clear"
            if isinstance(n.func.value, ast.Name)
        }
        return (stored(self.body) - self.before) | cleared

    def _others(self) -> Iterator[tuple[ast.Call, Method]]:
        """Calls of the object's own methods."""
        for n in (n for s in self.body for n in walk_here(s)):
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id.startswith("self."):
                other = _method(self.facts, self.holder, n.func.id.removeprefix("self."))
                if other is not None and other.f is not self.f:
                    yield n, other


@once_a_file
def _method(facts: Facts, c: ast.ClassDef, name: str) -> Method | None:
    f = facts.classes.methods(c).get(name)
    if isinstance(f, ast.FunctionDef):
        return Method(facts, c, f) if not is_static(f) and (f.args.posonlyargs or f.args.args) else None
    bases = {b.id for b in c.bases if isinstance(b, ast.Name)}
    above = [d for d in facts.walk(ast.ClassDef) if d.name in bases and d is not c]
    return next((m for d in above if (m := _method(facts, d, name)) is not None), None)


class _Attributes(ast.NodeTransformer):
    """`this.x` to the name `self.x`."""

    def __init__(self, first: str) -> None:
        self.first = first

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == self.first:
            return ast.copy_location(ast.Name(f"self.{node.attr}", node.ctx), node)
        return node


def flows(body: Iterable[ast.stmt], names: set[str], start: ast.AST | None = None) -> set[str]:
    """The names, and those that the statements give, or put in, what is computed from them, or from `start`."""
    nodes = [n for s in body for n in walk_here(s)]
    found, size = set(names), -1
    while size != len(found):
        size = len(found)
        for n in nodes:
            for value, targets in _transfers(n):
                if reads(value, found, start):
                    found |= {r for t in targets for r in _roots(t)}
    return found


def _transfers(n: ast.AST) -> Iterator[tuple[ast.AST, list[ast.expr]]]:
    """A value, and what gets it."""
    if isinstance(n, ast.Assign):
        pairs = [(t, n.value) for t in n.targets]
        for t, v in pairs:
            if isinstance(t, ast.Tuple) and isinstance(v, ast.Tuple) and len(t.elts) == len(v.elts):
                yield from ((e, [to]) for to, e in zip(t.elts, v.elts, strict=True))
            else:
                yield v, [t]
    elif isinstance(n, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and n.value is not None:
        yield n.value, [n.target]
    elif isinstance(n, (ast.For, ast.comprehension)):
        yield n.iter, [n.target]
    elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in PUTS:
        yield from ((a, [n.func.value]) for a in (*n.args, *n.keywords))


def _roots(t: ast.expr) -> Iterator[str]:
    """The variables of targets: x of `x`, `x[i]`, `x.y`, `x.get(i)`, `*x`."""
    if isinstance(t, (ast.Tuple, ast.List)):
        for e in t.elts:
            yield from _roots(e)
        return
    while isinstance(t, (ast.Attribute, ast.Subscript, ast.Starred, ast.Call)):
        t = t.func if isinstance(t, ast.Call) else t.value
    if isinstance(t, ast.Name):
        yield t.id


def reads(node: ast.AST, names: set[str], start: ast.AST | None = None) -> bool:
    """Whether a value is computed from these names, or from `start`; sizes and kinds are not."""
    if node is start:
        return True
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Attribute) and node.attr in SIZES:
        return False
    if isinstance(node, ast.Call):
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if last in COUNTS or last.endswith("_like") or last.startswith("new_"):
            return False
    return any(reads(child, names, start) for child in children(node))

"""Which scope each name belongs to, and where it is read and written.

A scope is the module, a function, a lambda or a class body; comprehensions count to the scope that holds them, but for
their own targets. Python's rules: https://docs.python.org/3/reference/executionmodel.html#naming-and-binding
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .nodes import ALL_FIELDS, WITH_GAPS, children, walk

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
NOTHING: frozenset[str] = frozenset()
# what more is to be known of than its parent
_SPECIAL = {
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp, ast.Global, ast.Nonlocal, ast.alias, ast.ExceptHandler, ast.MatchAs, ast.MatchStar,
    ast.MatchMapping,
}  # fmt: skip
_OF_A_VALUE = {ast.Attribute, ast.Expr, ast.keyword}  # with nothing else below
ScopeNode = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


def binding(whole: Comprehension, name: str, child: ast.AST, part: ast.AST | None) -> ast.comprehension | None:
    """The `for` of a comprehension that a name is the target of, for a read in `child` of it, and in `part` of that.

    What a `for` goes through is not in reach of its own target: in `[f(x) for x in x]` the last x is another.
    """
    reached = whole.generators
    if isinstance(child, ast.comprehension):
        at = reached.index(child)
        reached = reached[: at if part is child.iter else at + 1]
    for g in reversed(reached):
        if any(n.id == name for n in walk(g.target, ast.Name)):
            return g
    return None


class Stores(dict[str, list[ast.AST]]):
    """The nodes that bind each name; asking for a name that is not there leaves none behind."""

    def __missing__(self, name: str) -> list[ast.AST]:
        return []

    def add(self, name: str, node: ast.AST) -> None:
        self.setdefault(name, []).append(node)


class Scope:
    """The names of one scope: `loads` and `stores` hold the nodes, in the order of the text."""

    def __init__(self, node: ScopeNode, parent: Scope | None) -> None:
        self.node = node
        self.parent = parent
        self.loads: dict[str, list[ast.Name]] = defaultdict(list)
        self.stores = Stores()
        self.params: dict[str, ast.arg] = {}
        self.globals: set[str] = set()  # nonlocal names among them
        self.nonlocals: set[str] = set()
        self.children: list[Scope] = []
        self._homes: dict[str, Scope | None] = {}  # what `lookup` found

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    def binds(self, name: str) -> bool:
        return name not in self.globals and (name in self.stores or name in self.params)

    def read(self) -> Iterator[str]:
        """The names that are read in it and below: a new local of such a name would hide what they mean."""
        yield from self.loads
        for below in self.children:
            yield from below.read()

    def forget(self) -> None:
        """What holds it in a cycle."""
        self.children.clear()
        self._homes.clear()

    def lookup(self, name: str) -> Scope | None:
        """The scope that a name read here belongs to; None for builtins and unknown names."""
        if name not in self._homes:
            self._homes[name] = self._home_of(name)
        return self._homes[name]

    def _home_of(self, name: str) -> Scope | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.globals and name not in scope.nonlocals:
                while scope.parent is not None:
                    scope = scope.parent
                return scope
            if scope.binds(name) and (scope is self or not scope.is_class):
                return scope
            scope = scope.parent
        return None


Part = tuple[ast.AST, frozenset[str]]  # a node to read, and the names that a comprehension hides


class Scopes:
    """All scopes of a tree, the parent of every node, and the reads of a binding wherever they stand."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}  # of all nodes, in the order of the text, the outer ones first
        self.by_node: dict[ast.AST, Scope] = {}
        self.of_name: dict[ast.AST, Scope] = {}  # of its names
        self.hidden: set[ast.Name] = set()  # names that a comprehension binds for itself, there
        self._of_generators: set[str] = set()  # what any comprehension binds
        self._readers: dict[str, list[Scope]] | None = None  # those that read a name, once it is asked
        self.module = Scope(tree, None)
        self.by_node[tree] = self.module
        self._fill(self._adopt(tree)[::-1], self.module)

    def _fill(self, stack: list[ast.AST], scope: Scope, hidden: frozenset[str] = NOTHING) -> None:
        """Reads nodes, the last one first, in a scope whose comprehension hides names."""
        parents, of_name, loads, fields = self.parents, self.of_name, scope.loads, ALL_FIELDS
        while stack:
            node: Any = stack.pop()
            kind = node.__class__
            while kind in _OF_A_VALUE:
                value = node.value
                parents[value] = node
                node, kind = value, value.__class__
            if kind is ast.Name:
                of_name[node] = scope
                name: str = node.id
                if name in hidden:
                    self.hidden.add(node)
                elif node.ctx.__class__ is ast.Load:
                    loads[name].append(node)
                else:
                    home = scope if name not in scope.globals else self._home(name, scope)
                    home.stores.add(name, node)
                continue
            if kind is ast.Constant:
                continue
            below: list[ast.AST]
            if kind is ast.Call:
                below = [node.func, *node.args, *node.keywords]
            elif kind in _SPECIAL and self._fill_special(node, scope, hidden, stack):
                continue
            else:
                below = []
                for field in fields[kind]:
                    value = getattr(node, field, None)
                    if value.__class__ is list:
                        below += value
                    elif value is not None:
                        below.append(value)
                if kind in WITH_GAPS:
                    below = [n for n in below if n is not None]
            for child in below:
                parents[child] = node
            stack += below[::-1]

    def _fill_special(self, node: ast.AST, scope: Scope, hidden: frozenset[str], stack: list[ast.AST]) -> bool:
        """Reads a node that has a scope, or names, of its own; whether that is all of it."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            scope.stores.add(node.name, node)
            outer = self._outer_parts(node)
            self._fill([*reversed(node.body)], self._scope(node, scope))
            stack += reversed(outer)
            return True
        if isinstance(node, ast.Lambda):
            stack += (c for c in self._adopt(node.args) if not isinstance(c, ast.arg))
            self.parents[node.args] = self.parents[node.body] = node
            inner = self._scope(node, scope)
            self._fill([node.body], inner, hidden.difference(inner.params))
            return True
        if isinstance(node, Comprehension):
            for part, own in reversed(self._parts_of(node, hidden)):
                self._fill([part], scope, own)
            return True
        self._note(node, scope)
        return False

    def _parts_of(self, node: Comprehension, hidden: frozenset[str]) -> list[Part]:
        """The parts of a comprehension, last first. What it goes through first is read outside: `[f(x) for x in x]`."""
        parents, first = self.parents, node.generators[0].iter
        bound = {n.id for g in node.generators for n in walk(g.target, ast.Name)}
        self._of_generators |= bound
        own = hidden | bound
        parts: list[Part] = []
        for g in reversed(node.generators):
            parents[g] = node
            for part in (*reversed(g.ifs), g.iter, g.target):
                parents[part] = g
                parts.append((part, hidden if part is first else own))
        for part in (node.value, node.key) if isinstance(node, ast.DictComp) else (node.elt,):
            parents[part] = node
            parts.append((part, own))
        return parts

    def _home(self, name: str, scope: Scope) -> Scope:
        """The scope that an assignment to a declared name belongs to; a nonlocal one stays where it is written."""
        return scope if name in scope.nonlocals else self.module

    def _note(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            scope.globals.update(node.names)
            if isinstance(node, ast.Nonlocal):
                scope.nonlocals.update(node.names)
        elif isinstance(node, ast.alias):
            scope.stores.add((node.asname or node.name).split(".")[0], node)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            scope.stores.add(node.name, node)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            scope.stores.add(node.rest, node)

    def _adopt(self, node: ast.AST) -> list[ast.AST]:
        adopted = children(node)
        for child in adopted:
            self.parents[child] = node
        return adopted

    def _outer_parts(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[ast.AST]:
        """What a definition evaluates in the scope around it: decorators, defaults, annotations, base classes."""
        self._adopt(node)
        if isinstance(node, ast.ClassDef):
            return [*node.decorator_list, *node.bases, *(k.value for k in self._keywords(node))]
        arguments = self._adopt(node.args)
        for a in arguments:
            self._adopt(a)
        annotations = [a.annotation for a in arguments if isinstance(a, ast.arg) and a.annotation]
        defaults = [a for a in arguments if not isinstance(a, ast.arg)]
        return [*node.decorator_list, *defaults, *annotations, *([node.returns] if node.returns else [])]

    def _keywords(self, node: ast.ClassDef) -> list[ast.keyword]:
        for k in node.keywords:
            self.parents[k.value] = k
        return node.keywords

    def _scope(self, node: ScopeNode, parent: Scope) -> Scope:
        scope = self.by_node[node] = Scope(node, parent)
        parent.children.append(scope)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            a = node.args
            for arg in [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]:
                scope.params[arg.arg] = arg
        return scope

    def scope_of(self, node: ast.AST) -> Scope:
        """The scope that a node is evaluated in."""
        own = self.of_name.get(node)
        if own is not None:
            return own
        up: ast.AST | None = self.parents.get(node)
        while up is not None and up not in self.by_node:
            up = self.parents.get(up)
        return self.by_node[up] if up is not None else self.module

    def generator_of(self, node: ast.Name) -> ast.comprehension | None:
        """The `for` of a comprehension that binds the name where it is read."""
        if node.id not in self._of_generators:
            return None
        part: ast.AST | None = None
        child: ast.AST = node
        for up in self.ancestors(node):
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                return None
            if isinstance(up, ast.Lambda) and child is up.body and node.id in self.by_node[up].params:
                return None
            if isinstance(up, Comprehension):
                g = binding(up, node.id, child, part)
                if g is not None:
                    return g
            part, child = child, up
        return None

    def reads(self, name: str, scope: Scope) -> Iterator[ast.Name]:
        """Every read of the name that this scope binds, in it and in the scopes below."""
        if scope is self.module:  # a file of a thousand functions asks for a thousand names
            for s in self._readers_of(name):
                if not self._hides(name, s):
                    yield from s.loads[name]
            return
        stack = [scope]
        while stack:
            s = stack.pop()
            if s is not scope and s.binds(name) and not s.is_class:
                continue
            yield from s.loads.get(name, ())
            stack.extend(s.children)

    def _readers_of(self, name: str) -> list[Scope]:
        """The scopes in which a name is read, in the order in which `reads` goes through them."""
        if self._readers is None:
            self._readers = {}
            stack = [self.module]
            while stack:
                s = stack.pop()
                for read in s.loads:
                    self._readers.setdefault(read, []).append(s)
                stack.extend(s.children)
        return self._readers.get(name, [])

    def _hides(self, name: str, scope: Scope) -> bool:
        """Whether a scope, or one around it, has a name of its own where the module has one."""
        while scope.parent is not None:
            if scope.binds(name) and not scope.is_class:
                return True
            scope = scope.parent
        return False

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that a node stands in."""
        up = node
        while not isinstance(up, ast.stmt):
            up = self.parents[up]
        return up

    def block_of(self, s: ast.stmt) -> list[ast.stmt]:
        """The statements of the block that one stands in, with it; of a tree's own body, too."""
        up = self.parents.get(s)
        blocks = (getattr(up, field, None) for field in ("body", "orelse", "finalbody"))
        return next((b for b in blocks if isinstance(b, list) and s in b), [])

    def functions_around(self, node: ast.AST) -> Iterator[ast.FunctionDef | ast.Lambda]:
        """The functions in whose bodies a node stands, innermost first: none whose defaults or decorators have it."""
        child = node
        for up in self.ancestors(node):
            own = isinstance(up, ast.FunctionDef) and child in up.decorator_list
            if isinstance(up, (ast.FunctionDef, ast.Lambda)) and not (own or isinstance(child, ast.arguments)):
                yield up
            child = up

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        up = self.parents.get(node)
        while up is not None:
            yield up
            up = self.parents.get(up)

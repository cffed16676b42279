"""One quick walk over a tree: the nodes by type, the parent of each, the calls by name.

Every other fact that lint needs starts from these lists, so that a file is walked once, however many rules there are.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar, cast, overload

from .annotated import Annotated

N = TypeVar("N", bound=ast.AST)
T = TypeVar("T")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS: tuple[type[Comprehension], ...] = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

# Fields that never hold a node worth a visit: contexts, operators, names and the like.
_PLAIN = {
    "ctx", "id", "attr", "arg", "op", "ops", "kind", "names", "type_comment", "type_ignores", "level", "module", "name",
    "asname", "simple", "is_async", "conversion", "rest", "kwd_attrs", "str", "type_params",
}  # fmt: skip


def _children_fields(plain: set[str]) -> dict[type, tuple[str, ...]]:
    fields: dict[type, tuple[str, ...]] = {}
    for value in vars(ast).values():
        if isinstance(value, type) and issubclass(value, ast.AST):
            fields[value] = tuple(f for f in value._fields if f not in plain)
    fields[ast.Constant] = fields[ast.MatchSingleton] = fields[ast.Global] = fields[ast.Nonlocal] = ()
    fields[ast.keyword] = ("value",)
    fields[ast.NamedExpr] = ("target", "value")
    fields[Annotated] = Annotated._fields
    return fields


_FIELDS = _children_fields(_PLAIN)
ALL_FIELDS = _children_fields(_PLAIN - {"names", "type_params"})  # with aliases and type variables
if alias := getattr(ast, "TypeAlias", None):
    ALL_FIELDS[alias] = alias._fields
WITH_GAPS = {ast.Dict, ast.arguments}  # that have lists with None among the nodes: of `**options`, of no default


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below one, in the order of its fields; contexts and operators are left out."""
    found: list[ast.AST] = []
    for field in ALL_FIELDS[node.__class__]:
        value = getattr(node, field, None)
        if value.__class__ is list:
            found += value
        elif value is not None:
            found.append(value)
    return found if node.__class__ not in WITH_GAPS else [n for n in found if n is not None]


class Answers(dict[N, T]):
    """What a question has for answers, by the nodes that it was asked of."""

    def __init__(self, question: Callable[[N], T]) -> None:
        super().__init__()
        self.question = question

    def __missing__(self, node: N) -> T:
        answer = self[node] = self.question(node)
        return answer


_answers: list[dict[Any, Any]] = []  # of every question that is asked once a node
_by_kind: defaultdict[type, dict[ast.AST, list[ast.AST]]] = defaultdict(dict)  # what `walk` found


def once_a_node(question: Callable[[N], T]) -> Callable[[N], T]:
    """Keeps the answer about a node until a file is done (`forget_nodes`): trees do not change."""
    answers = Answers(question)
    _answers.append(answers)
    return answers.__getitem__  # what is known is told without a call of Python's


def forget_nodes() -> None:
    """A file is done: what is known of its nodes would keep them. Weak references would cost more than the walks."""
    for answers in (*_answers, *_by_kind.values()):
        answers.clear()


@once_a_node
def below(node: ast.AST) -> list[ast.AST]:
    """All nodes below one, in the order of `ast.walk`, in a third of its time."""
    found, fields = children(node), ALL_FIELDS
    for n in found:  # which grows meanwhile
        for field in fields[n.__class__]:
            value = getattr(n, field, None)
            if value.__class__ is list:
                found += value if n.__class__ not in WITH_GAPS else [v for v in value if v is not None]
            elif value is not None:
                found.append(value)
    return found


@overload
def walk(node: ast.AST) -> list[ast.AST]: ...
@overload
def walk(node: ast.AST, kind: type[N]) -> Sequence[N]: ...
def walk(node: ast.AST, kind: type[N] | None = None) -> Sequence[ast.AST]:
    """A node and all below it in the order of `ast.walk`, or those of one type; see `children`."""
    if kind is None:
        return [node, *below(node)]
    known = _by_kind[kind]
    found = known.get(node)
    if found is None:
        if kind is ast.Assign:
            found = [n for n in below(node) if n.__class__ is ast.Assign or n.__class__ is Annotated]
        else:
            found = [n for n in below(node) if n.__class__ is kind]
        if node.__class__ is kind or (kind is ast.Assign and node.__class__ is Annotated):
            found.insert(0, node)
        known[node] = found
    return found


def with_annotated(by_type: dict[type, list[ast.AST]]) -> None:
    """Annotated assignments are found among the assignments."""
    if annotated := by_type.pop(Annotated, None):
        by_type.setdefault(ast.Assign, []).extend(annotated)


class Nodes:
    """All nodes of a tree; the lists by type are in no particular order."""

    def __init__(
        self,
        tree: ast.Module,
        parents: dict[ast.AST, ast.AST] | None = None,
        by_type: dict[type, list[ast.AST]] | None = None,
    ) -> None:
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {} if parents is None else parents
        self.by_type: dict[type, list[ast.AST]] = {} if by_type is None else by_type
        if parents is None:
            self._fill()

    def _fill(self) -> None:
        by_type, parents, fields = self.by_type, self.parents, _FIELDS
        stack: list[ast.AST] = [self.tree]
        pop, push = stack.pop, stack.append
        while stack:
            node = pop()
            kind = node.__class__
            if kind in by_type:
                by_type[kind].append(node)
            else:
                by_type[kind] = [node]
            for field in fields[kind]:
                value = getattr(node, field)
                if value.__class__ is list:
                    for item in value:
                        if item is not None:
                            parents[item] = node
                            push(item)
                elif value is not None:
                    parents[value] = node
                    push(value)
        with_annotated(by_type)

    def of(self, kind: type[N]) -> list[N]:
        """All nodes of exactly this type."""
        return cast("list[N]", self.by_type.get(kind, []))

    @cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        """Calls by the last part of what is called: `loss.backward()` is under "backward"."""
        found: dict[str, list[ast.Call]] = {}
        for call in self.of(ast.Call):
            func = call.func
            if func.__class__ is ast.Attribute:
                found.setdefault(func.attr, []).append(call)
            elif func.__class__ is ast.Name:
                found.setdefault(func.id, []).append(call)
        return found

    @cached_property
    def functions(self) -> list[Function]:
        return [*self.of(ast.FunctionDef), *self.of(ast.AsyncFunctionDef)]

    @cached_property
    def loops(self) -> list[Loop]:
        return [*self.of(ast.For), *self.of(ast.AsyncFor), *self.of(ast.While)]

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """What holds the node, innermost first."""
        parents = self.parents
        up = parents.get(node)
        while up is not None:
            yield up
            up = parents.get(up)

    def function_of(self, node: ast.AST) -> Function | None:
        """The innermost function whose body holds the node."""
        child = node
        for up in self.ancestors(node):
            if isinstance(up, FUNCTIONS) and in_body(up, child):
                return up
            child = up
        return None

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class whose body the node stands in, functions between them allowed."""
        return next((up for up in self.ancestors(node) if isinstance(up, ast.ClassDef)), None)

    def statement_of(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node


def in_body(function: Function, child: ast.AST) -> bool:
    """Whether a direct child is part of the body, not a decorator, a default or an annotation."""
    return isinstance(child, ast.stmt)


def walk_own(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of a block that run with it: nested functions, lambdas and classes are not entered."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            continue
        stack += reversed(children(node))


def is_main_guard(test: ast.expr) -> bool:
    """`__name__ == "__main__"`, in either order."""
    return ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")

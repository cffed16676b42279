"""Small questions to syntax that several parts of the lift ask."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..facts.nodes import COMPREHENSIONS, children, once_a_node, walk
from ..facts.script import Facts

OWN_SCOPE = {ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef}


@once_a_node
def walk_here(node: ast.AST) -> Sequence[ast.AST]:
    """ast.walk without the bodies of nested functions and classes."""
    found = [node]
    stack = children(node)
    while stack:
        n = stack.pop()
        found.append(n)
        if n.__class__ not in OWN_SCOPE:
            stack += children(n)
    return found


@once_a_node
def returned(f: ast.FunctionDef) -> list[ast.expr]:
    """The values that a function returns, the functions inside of it aside."""
    return [n.value for n in walk_here(f) if isinstance(n, ast.Return) and n.value is not None]


def method_call(s: ast.stmt, method: str) -> tuple[str, ast.Call] | None:
    """(name, call) for the statement `name.method(...)`."""
    if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Attribute):
        f = s.value.func
        if f.attr == method and isinstance(f.value, ast.Name):
            return f.value.id, s.value
    return None


def is_call_of(n: ast.AST, method: str) -> bool:
    """Whether a node is `x.method(...)`."""
    return isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == method


def is_mode_call(s: ast.stmt, mode: str) -> str | None:
    """The name of the module for `model.train()` or `model.eval()` as a statement."""
    if (
        isinstance(s, ast.Expr)
        and isinstance(s.value, ast.Call)
        and isinstance(s.value.func, ast.Attribute)
        and s.value.func.attr == mode
        and isinstance(s.value.func.value, ast.Name)
        and not s.value.args
        and not s.value.keywords
    ):
        return s.value.func.value.id
    return None


def local_function(facts: Facts, name: ast.Name) -> ast.FunctionDef | None:
    scope = facts.scopes.scope_of(name).lookup(name.id)
    if scope is None:
        return None
    stores = scope.stores.get(name.id, [])
    return stores[0] if len(stores) == 1 and isinstance(stores[0], ast.FunctionDef) else None


def names_below(facts: Facts, f: ast.FunctionDef, seen: frozenset[str] = frozenset()) -> set[str]:
    """All names that a function of this file reads, in it and in the functions of this file that it calls."""
    found: set[str] = set()
    for n in walk(f, ast.Name):
        found.add(n.id)
        inner = local_function(facts, n)
        if inner is not None and inner is not f and inner.name not in seen:
            found |= names_below(facts, inner, seen | {f.name})
    return found


def names_of(node: ast.AST) -> list[ast.Name]:
    """The names of a statement that belong to its own scope: the locals of functions nested in it are left out."""
    return [node] if isinstance(node, ast.Name) else _names_below(node)


@once_a_node
def _names_below(node: ast.AST) -> list[ast.Name]:
    found: list[ast.Name] = []
    stack: list[tuple[ast.AST, frozenset[str]]] = [(node, frozenset())]
    while stack:
        n, hidden = stack.pop()
        kind = n.__class__
        if kind is ast.Name:
            if n.id not in hidden:  # type: ignore[attr-defined]
                found.append(n)  # type: ignore[arg-type]
            continue
        if kind in OWN_SCOPE and isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            hidden = hidden | _locals(n)
        elif kind in COMPREHENSIONS:
            own = {x.id for g in n.generators for x in walk(g.target, ast.Name)}  # type: ignore[attr-defined]
            first = n.generators[0]  # type: ignore[attr-defined]
            stack.append((first.iter, hidden))  # it is read outside
            hidden = hidden | own
            stack += [(c, hidden) for c in children(n) if c is not first]
            stack += [(c, hidden) for c in (first.target, *first.ifs)]
            continue
        stack += [(c, hidden) for c in children(n)]
    return found


def _locals(f: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    bound = {a.arg for a in walk(f.args, ast.arg)}
    outer: set[str] = set()
    for n in walk(f):
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
            bound.add(n.id)
        elif isinstance(n, (ast.Global, ast.Nonlocal)):
            outer.update(n.names)
    return bound - outer


def pairs(s: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of a statement with one target, or one tuple of them, and what each is given."""
    target, value = s.targets[0], s.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]

"""What statements read before they have surely written it, and what they have written when they are over."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import lru_cache
from types import MappingProxyType

from ..facts.nodes import children, once_a_node, walk
from ..facts.script import Facts
from ..facts.spelled import spelled
from .nodes import names_of


def names_in(statements: Iterable[ast.stmt]) -> Iterator[ast.Name]:
    for s in statements:
        yield from names_of(s)


def exposed(statements: list[ast.stmt], under: Mapping[str, set[str]] = MappingProxyType({})) -> set[str]:
    """The names that may be read before these statements have surely written them.

    `under`: what is surely written where a test holds, by the test's source; another `if` of that test may read it.
    """
    sure: set[str] = set()
    under = dict(under)
    open_reads: set[str] = set()
    for s in statements:
        stores, loads = _stored_by(s), _loaded_by(s)
        if isinstance(s, ast.AugAssign):
            loads |= stores
        changed = stores | _attributes_of(s)
        if under:
            under = {test: names for test, names in under.items() if not _reads_any(test, changed)}
        if isinstance(s, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            open_reads |= _exposed_inside(s, under) - sure
            sure |= sure_of(s) or set()
            if isinstance(s, ast.If) and _is_steady(s.test) and not _reads_any(test := spelled(s.test), changed):
                under[test] = under.get(test, set()) | (sure_stores(s.body) or set())
            continue
        open_reads |= loads - sure
        if isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Import, ast.ImportFrom)):
            sure |= stores
    return open_reads


def chosen_once(facts: Facts, statements: list[ast.stmt], loop: ast.For | None = None) -> set[str]:
    """Names that branches of one `if`, or of several one after another, and nothing else, give a value: the tests have
    one answer in every round.

    Where no branch is taken none ever is, and what reads the name has no value in the first round already.
    """
    changed = {n.id for s in statements for n in walk(s, ast.Name) if not isinstance(n.ctx, ast.Load)}
    changed = changed.union(*map(_attributes_of, statements))
    changed |= {n.id for n in walk(loop.target, ast.Name)} if loop is not None else set()
    found: set[str] = set()
    chosen: list[ast.stmt] = []  # one after another
    blocks: list[list[ast.stmt]] = []
    for s in statements:
        own = _branches(s, changed)
        chosen, blocks = ([*chosen, s], [*blocks, *own]) if own else ([], [])
        inside = {n for c in chosen for n in walk(c)}
        for name in stored([s]) if own else ():
            giving = [b for b in blocks if name in stored(b)]
            sure = all(name in (sure_stores(b) or ()) for b in giving) and not any(name in exposed(b) for b in blocks)
            node = next(n for n in walk(s, ast.Name) if n.id == name)
            home = facts.scopes.scope_of(node).lookup(name)
            if sure and home is not None and all(store in inside for store in home.stores.get(name, ())):
                found |= {name} - set(home.params)
    return found


def _branches(s: ast.stmt, changed: Set[str]) -> list[list[ast.stmt]]:
    """The blocks of an `if` whose tests have one answer in every round, and that has no `else`."""
    blocks: list[list[ast.stmt]] = []
    branch: ast.stmt = s
    while isinstance(branch, ast.If) and _is_steady(branch.test) and not _reads_any(spelled(branch.test), changed):
        blocks.append(branch.body)
        if not branch.orelse:
            return blocks
        if len(branch.orelse) != 1:
            break
        branch = branch.orelse[0]
    return []


def _is_steady(test: ast.expr) -> bool:
    """Whether a test has one answer as long as nothing sets its names: options, flags and constants."""
    kinds = (ast.Name, ast.Attribute, ast.Constant, ast.UnaryOp, ast.Not, ast.BoolOp, ast.boolop, ast.Compare)
    return all(isinstance(n, (*kinds, ast.cmpop, ast.expr_context)) for n in walk(test))


def _reads_any(test: str, changed: Set[str]) -> bool:
    return not changed.isdisjoint(_parts_of(test))


@lru_cache(maxsize=256)
def _parts_of(test: str) -> frozenset[str]:
    """The names and attributes that an expression reads, as texts."""
    return frozenset(ast.unparse(n) for n in ast.walk(ast.parse(test)) if isinstance(n, (ast.Name, ast.Attribute)))


@once_a_node
def _stored_by(s: ast.stmt) -> frozenset[str]:
    return frozenset(n.id for n in names_of(s) if not isinstance(n.ctx, ast.Load))


@once_a_node
def _loaded_by(s: ast.stmt) -> frozenset[str]:
    return frozenset(n.id for n in names_of(s) if isinstance(n.ctx, ast.Load))


@once_a_node
def _attributes_of(s: ast.stmt) -> frozenset[str]:
    """The attributes that a statement sets, as texts."""
    return frozenset(spelled(n) for n in walk(s, ast.Attribute) if _is_set(n))


def _is_set(n: ast.Attribute) -> bool:
    return not isinstance(n.ctx, ast.Load)


def sure_stores(block: list[ast.stmt]) -> set[str] | None:
    """The names that a block has surely written when it is over; None where it is never left at its end."""
    sure: set[str] = set()
    for s in block:
        found = sure_of(s)
        if found is None:
            return None
        sure |= found
    return sure


@once_a_node
def sure_of(s: ast.stmt) -> set[str] | None:
    if isinstance(s, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
        return None
    if isinstance(s, ast.If):
        return _either(sure_stores(s.body), sure_stores(s.orelse))
    if isinstance(s, ast.With):
        opened = {n.id for i in s.items if i.optional_vars for n in walk(i.optional_vars, ast.Name)}
        body = sure_stores(s.body)
        return None if body is None else body | opened
    if isinstance(s, ast.Try):
        found = sure_stores(s.body)
        for h in s.handlers:
            found = _either(found, sure_stores(h.body))
        return found
    if isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Import, ast.ImportFrom)):
        if isinstance(s, ast.AnnAssign) and s.value is None:
            return set()
        return {n.id for n in walk(s, ast.Name) if isinstance(n.ctx, ast.Store)}
    return set()


LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@once_a_node
def surely_read(s: ast.AST) -> set[str]:
    """The names that a statement reads whenever it runs: none of its branches, nor of what it may call later."""
    if isinstance(s, ast.With):
        opened = {n for item in s.items for n in _at_once(item.context_expr)}
        return opened.union(*(surely_read(inner) for inner in s.body))
    return set(_at_once(s)) if isinstance(s, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)) else set()


def _at_once(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    if isinstance(node, ast.BoolOp):
        yield from _at_once(node.values[0])
    elif isinstance(node, ast.IfExp):
        yield from _at_once(node.test)
    elif isinstance(node, ast.Compare):  # `a < b < c` reads c only where a < b
        yield from [*_at_once(node.left), *_at_once(node.comparators[0])]
    elif not isinstance(node, LATER):
        for child in children(node):
            yield from _at_once(child)


def _either(a: set[str] | None, b: set[str] | None) -> set[str] | None:
    if a is None or b is None:
        return a if b is None else b
    return a & b


def _exposed_inside(s: ast.stmt, under: Mapping[str, set[str]]) -> set[str]:
    """Reads of a compound statement: its own expressions, and what its blocks expose."""
    held = under.get(spelled(s.test), set()) if isinstance(s, ast.If) and under else set()
    found: set[str] = set()
    own_reads: set[str] = set()  # `for x in f(x):` reads it before it is the loop's
    own_targets: set[str] = set()
    for name, value in ast.iter_fields(s):
        if name in ("body", "orelse", "finalbody") and isinstance(value, list):
            found |= exposed(value, under) - (held if name == "body" else set())
        elif name == "handlers":
            for h in value:
                found |= exposed(h.body, under)
        elif name == "target":
            own_targets = {n.id for n in walk(value, ast.Name)}
        elif name == "items":
            for item in value:
                reads = {n.id for n in walk(item, ast.Name) if isinstance(n.ctx, ast.Load)}
                own_reads |= reads - own_targets
                own_targets |= {n.id for n in walk(item, ast.Name) if isinstance(n.ctx, ast.Store)}
        elif isinstance(value, ast.AST):
            own_reads |= {n.id for n in names_of(value) if isinstance(n.ctx, ast.Load)}
    return (found - own_targets) | own_reads


def stored(statements: list[ast.stmt]) -> set[str]:
    return set[str]().union(*map(_stored_by, statements))

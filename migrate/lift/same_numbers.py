"""Names of a step that hold the same number on every rank: what it computes of the numbers of its steps and epochs.

`batches_done = epoch * len(loader) + i`, and `if batches_done % 100 == 0:` is passed by all ranks or by none.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.spelled import spelled
from .nodes import local_function
from .recipe import DataPass, once_a_pass
from .touched import DOTTED, touched

Store = ast.Assign | ast.AugAssign
ARITHMETIC = ("min", "max", "len", "int", "float", "round", "abs", "range")
OF_NUMPY = "exp log sqrt cos sin tanh power clip maximum minimum floor ceil interp".split()
STATEMENTS = (ast.FunctionDef, ast.Assign, ast.AugAssign, ast.If, ast.Return, ast.Expr, ast.Pass)
PLAIN = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call),
    *(ast.JoinedStr, ast.FormattedValue, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)


def same_numbers(facts: Facts, passing: DataPass) -> set[str]:
    """The names to which every statement of the step that gives them a value gives such a number."""
    return _computed(facts, passing) | running_names(facts, passing)


@once_a_pass
def running_names(facts: Facts, passing: DataPass) -> set[str]:
    """Those that running.py has found to be the same, once what they are made of is brought together."""
    return set()


@once_a_pass
def _computed(facts: Facts, passing: DataPass) -> set[str]:
    stores: dict[str, list[Store | None]] = {}
    for n in (n for s in passing.body for n in walk(s, ast.Name) if not isinstance(n.ctx, ast.Load)):
        stores.setdefault(n.id, []).append(given_by(facts, n))
    own = {n.id for n in walk(passing.target, ast.Name)} - {passing.index} | touched(facts, passing)
    found = {
        name for name, by in stores.items() if name not in own and all(s and is_number(facts, s.value) for s in by)
    }
    own |= stores.keys() - found
    size = -1
    while size != len(found):
        size = len(found)
        found = {name for name in found if all(s and _is_same(facts, passing, s, own) for s in stores[name])}
        own |= stores.keys() - found
    return found


def given_by(facts: Facts, name: ast.Name) -> Store | None:
    """The statement that gives one name its value; None for one that gives it by the way."""
    up = facts.scopes.parents.get(name)
    return up if isinstance(up, ast.AugAssign) or (isinstance(up, ast.Assign) and len(up.targets) == 1) else None


def is_number(
    facts: Facts, value: ast.expr, own: Collection[str] = (), known: Collection[ast.AST] = (), deep: int = 0
) -> bool:
    """Whether an expression is arithmetic, or a text of it, into which none of the names goes.

    `known`: parts of it that are numbers, whatever goes into them.
    """
    inside = {n for k in known for n in walk(k)}
    for n in (n for n in walk(value) if n not in inside):
        if not isinstance(n, PLAIN) or (isinstance(n, DOTTED) and spelled(n) in own):
            return False
        if isinstance(n, ast.Call) and not _computes(facts, n.func, own, deep):
            return False
    return True


def _computes(facts: Facts, func: ast.expr, own: Collection[str], deep: int) -> bool:
    """`max`, `math.exp`, `numpy.cos`, and a function of this file that does no more than such arithmetic."""
    library, _, last = (facts.names.resolve(func) or "").rpartition(".")
    if library in ("math", "numpy"):
        return library == "math" or last in OF_NUMPY
    if not isinstance(func, ast.Name):
        return False
    f = local_function(facts, func)
    if f is None:
        return func.id in ARITHMETIC
    statements = [n for n in walk(f) if isinstance(n, ast.stmt)]
    if deep > 3 or f.decorator_list or not all(isinstance(s, STATEMENTS) for s in statements):
        return False
    given = [a.arg for a in walk(f.args, ast.arg)]
    theirs = set(own) - {*given, *(n.id for n in walk(f, ast.Name) if isinstance(n.ctx, ast.Store))}
    values = [e for s in statements for e in _expressions(s)]
    return all(is_number(facts, e, theirs, deep=deep + 1) for e in values)


def _expressions(s: ast.stmt) -> list[ast.expr]:
    """What a statement computes, without what stands in blocks of it."""
    if isinstance(s, ast.FunctionDef):
        return [d for d in (*s.args.defaults, *s.args.kw_defaults) if d is not None]
    return [e for e in ast.iter_child_nodes(s) if isinstance(e, ast.expr)]


def _is_same(facts: Facts, passing: DataPass, s: Store, own: set[str]) -> bool:
    tests = _decided_by(facts, passing, s)
    return is_number(facts, s.value, own) and all(is_number(facts, test, own) for test in tests)


def _decided_by(facts: Facts, passing: DataPass, s: ast.stmt) -> Iterator[ast.expr]:
    """What decides in a pass whether a statement is run, and how often."""
    for up in facts.scopes.ancestors(s):
        if up is passing.loop:
            return
        if isinstance(up, (ast.If, ast.While)):
            yield up.test
        elif isinstance(up, ast.For):
            yield up.iter

"""Names of the trunk in code that the loop does not call by name, and that runs while it goes on: a data set, a
collate_fn, the lambda of a schedule, a hook, a handler of signals. The loop's own are attributes of the Module by then.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ..facts.scopes import Scope
from ..facts.script import Facts
from .chunks import Binder, Variables
from .nodes import local_function
from .recipe import CannotLift

Function = ast.FunctionDef | ast.Lambda
AT_ONCE = ("__init__", "__new__", "__init_subclass__", "__set_name__")


def seen_by_others(
    facts: Facts, binder: Binder, changed: Collection[str], variables: Variables, known: Collection[ast.AST]
) -> dict[str, CannotLift]:
    """The names that the loop changes and such code reads, each with why the loop stays then; CannotLift where such
    code changes one that the loop reads.

    `known`: functions that are looked at already.
    """
    read: dict[str, CannotLift] = {}
    kept = {v.name for v in variables.attributes if not v.owner}
    if not (kept or changed):
        return read
    for scope in facts.scopes.by_node.values():
        f = scope.node
        if f in known or f is binder.trunk_scope.node or not isinstance(f, (ast.FunctionDef, ast.Lambda)):
            continue
        reads = [n for n in scope.loads if n in changed and scope.lookup(n) is binder.trunk_scope]
        writes = [n for n in scope.globals & kept if scope.lookup(n) is binder.trunk_scope and _stores(facts, scope, n)]
        if (reads or writes) and _is_apart(facts, binder, f, known) and _may_run_later(facts, binder, f, known, set()):
            if writes:
                raise CannotLift(f, f"{_called(f)} changes `{writes[0]}`, which the loop reads")
            for name in reads:
                read.setdefault(name, CannotLift(f, f"{_called(f)} reads `{name}`, which the loop changes"))
    return read


def _called(f: Function) -> str:
    return f"{f.name}()" if isinstance(f, ast.FunctionDef) else "a lambda"


def _stores(facts: Facts, scope: Scope, name: str) -> bool:
    """Whether a name that a function declares `global` or `nonlocal` is given a value there."""
    stores = (*facts.scopes.module.stores[name], *scope.stores[name])
    return any(isinstance(n, ast.Name) and facts.scopes.of_name.get(n) is scope for n in stores)


def _is_apart(facts: Facts, binder: Binder, f: ast.AST, known: Collection[ast.AST]) -> bool:
    """Whether a function stands outside of the loop, and of what is lifted with it."""
    loop = binder.recipe.epoch_loop
    return not any(up is loop or up in known for up in facts.scopes.ancestors(f))


def _may_run_later(facts: Facts, binder: Binder, f: Function, known: Collection[ast.AST], asked: set[ast.AST]) -> bool:
    """Whether a function may be called while the loop goes on: but for one that is called by its name alone, above."""
    if isinstance(f, ast.Lambda):
        return not _is_over(facts, binder, f)
    if f.decorator_list:
        return True
    if isinstance(facts.scopes.parents.get(f), ast.ClassDef):
        return f.name not in AT_ONCE
    asked.add(f)
    return any(_hands_on(facts, binder, n, known, asked) for n in _names_of(facts, f))


def _is_over(facts: Facts, binder: Binder, f: ast.Lambda) -> bool:
    """Whether a lambda is called where it stands, or stands below a loop that runs once."""
    up, loop = facts.scopes.parents.get(f), binder.recipe.epoch_loop
    if isinstance(up, ast.Call) and up.func is f:
        return True
    below = f.lineno > (loop.end_lineno or 0) and facts.scopes.scope_of(f) is binder.trunk_scope
    return below and not any(isinstance(up, (ast.For, ast.While)) for up in facts.scopes.ancestors(loop))


def _names_of(facts: Facts, f: ast.FunctionDef) -> Iterator[ast.Name]:
    for scope in facts.scopes.by_node.values():
        yield from (n for n in scope.loads.get(f.name, ()) if local_function(facts, n) is f)


def _hands_on(facts: Facts, binder: Binder, n: ast.Name, known: Collection[ast.AST], asked: set[ast.AST]) -> bool:
    """Whether what reads a function's name may call it later, or hands it to who may."""
    up = facts.scopes.parents.get(n)
    if not (isinstance(up, ast.Call) and up.func is n):
        return True
    ancestors = [*facts.scopes.ancestors(n)]
    if binder.recipe.epoch_loop in ancestors or any(a in known for a in ancestors):
        return True  # what the loop goes over: `for x in batches():`
    caller = facts.scopes.scope_of(n).node
    if caller in asked or caller is binder.trunk_scope.node or not isinstance(caller, (ast.FunctionDef, ast.Lambda)):
        return False
    return _may_run_later(facts, binder, caller, known, asked)

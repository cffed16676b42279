"""Handles of collectives that a script waits for later: `h = dist.all_reduce(x, async_op=True)` and `h.wait()`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts


def statements_of(facts: Facts, call: ast.Call) -> list[ast.stmt] | None:
    """The statements that are there for a collective alone: its own, and those that wait for its handle.

    None where its value is used in another way.
    """
    holder = facts.scopes.parents.get(call)
    if isinstance(holder, ast.Expr):
        return [holder]
    whole = facts.scopes.parents.get(holder) if isinstance(holder, ast.expr) else None
    if isinstance(holder, ast.Tuple) and isinstance(whole, ast.Expr) and all(_talks(facts, e) for e in holder.elts):
        return [whole]  # `dist.all_reduce(loss), dist.all_reduce(n)`
    if isinstance(whole, ast.Expr) and _only_where(facts, holder, call):
        return [whole]
    wait = _wait(facts, call)
    if wait is not None:
        return [wait]
    if isinstance(holder, ast.Assign) and len(holder.targets) == 1 and isinstance(holder.targets[0], ast.Name):
        return _of_name(facts, holder.targets[0])
    appended = facts.scopes.parents.get(holder) if isinstance(holder, ast.Call) else None
    if isinstance(holder, ast.Call) and isinstance(appended, ast.Expr) and _appends_to(holder) is not None:
        return _of_list(facts, holder)
    return None


def _only_where(facts: Facts, holder: ast.AST | None, call: ast.Call) -> bool:
    """`dist.barrier() if many else None`, `many and dist.barrier()`: an if that asks and no more."""
    if isinstance(holder, ast.IfExp):
        other = holder.orelse if holder.body is call else holder.body
        asked: list[ast.expr] = [holder.test] if isinstance(other, ast.Constant) and other is not call else []
    else:
        asked = holder.values[:-1] if isinstance(holder, ast.BoolOp) and holder.values[-1] is call else []
    return bool(asked) and not any(_may_do_more(facts, c) for a in asked for c in walk(a, ast.Call))


def _may_do_more(facts: Facts, call: ast.Call) -> bool:
    """Whether a call may do more than ask: one of torch's does not, nor one of the script's own without effects."""
    asks = (facts.names.resolve(call.func) or "").startswith("torch.") or facts.devices.function_of(call) is not None
    return not asks or facts.devices.effects.has(call)


def _talks(facts: Facts, e: ast.expr) -> bool:
    return isinstance(e, ast.Call) and (facts.names.resolve(e.func) or "").startswith("torch.distributed.")


def _is_waited_for(call: ast.expr) -> bool:
    return isinstance(call, ast.Call) and any(k.arg == "async_op" for k in call.keywords)


def _wait(facts: Facts, handle: ast.expr) -> ast.stmt | None:
    """The statement `handle.wait()` of a handle that is read there."""
    method = facts.scopes.parents.get(handle)
    call = facts.scopes.parents.get(method) if isinstance(method, ast.Attribute) and method.attr == "wait" else None
    holder = facts.scopes.parents.get(call) if isinstance(call, ast.Call) and call.func is method else None
    return holder if isinstance(holder, ast.Expr) else None


def _of_name(facts: Facts, name: ast.Name) -> list[ast.stmt] | None:
    made = _made(facts, name, _is_waited_for)
    waits = [_wait(facts, read) for read in _reads(facts, name)]
    return [*made, *(w for w in waits if w is not None)] if made and None not in waits else None


def _made(facts: Facts, name: ast.Name, fits: Callable[[ast.expr], bool]) -> list[ast.stmt]:
    """The assignments of a name, where each gives it such a value and there is no other; else none."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    if scope is None or scope.is_class or name.id in scope.params:
        return []
    found = [facts.scopes.parents.get(store) for store in scope.stores.get(name.id, ())]
    made = [m for m in found if isinstance(m, ast.Assign) and len(m.targets) == 1 and fits(m.value)]
    return list(made) if len(made) == len(found) else []


def _reads(facts: Facts, name: ast.Name) -> list[ast.Name]:
    scope = facts.scopes.scope_of(name).lookup(name.id)
    return list(facts.scopes.reads(name.id, scope)) if scope is not None else []


def _appends_to(call: ast.Call) -> ast.Name | None:
    f = call.func
    named = isinstance(f, ast.Attribute) and f.attr == "append" and len(call.args) == 1
    return f.value if named and isinstance(f.value, ast.Name) else None  # type: ignore[attr-defined]


def _of_list(facts: Facts, append: ast.Call) -> list[ast.stmt] | None:
    """`handles = []`, `handles.append(...)` and `for h in handles: h.wait()`."""
    name = _appends_to(append)
    assert name is not None
    found = _made(facts, name, lambda value: isinstance(value, ast.List) and not value.elts)
    if not found:
        return None
    for read in _reads(facts, name):
        whole = facts.scopes.statement_of(read)
        call = whole.value if isinstance(whole, ast.Expr) else None
        appended = isinstance(call, ast.Call) and _appends_to(call) is read and _is_waited_for(call.args[0])
        if not appended and not (isinstance(whole, ast.For) and whole.iter is read and _only_waits(whole)):
            return None
        found.append(whole)
    return found


def _only_waits(loop: ast.For) -> bool:
    """`for h in handles: h.wait()`"""
    one = loop.body[0] if len(loop.body) == 1 and not loop.orelse else None
    called = one.value if isinstance(one, ast.Expr) else None
    named = list(walk(loop.target, ast.Name))
    return (
        isinstance(called, ast.Call)
        and isinstance(called.func, ast.Attribute)
        and called.func.attr == "wait"
        and isinstance(called.func.value, ast.Name)
        and [n.id for n in named] == [called.func.value.id]
    )

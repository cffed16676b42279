"""A DistributedSampler that a function of the file is called with: `train(model, loader, epoch, sampler=sampler)`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..facts.arguments import argument, argument_at
from ..facts.scopes import Scope
from ..facts.script import Facts

SAMPLER = "torch.utils.data.DistributedSampler"


def draws_all(call: ast.Call) -> bool:
    """Whether a DistributedSampler is that of one process."""
    replicas, rank = argument_at(call, "num_replicas", 1), argument_at(call, "rank", 2)
    return [getattr(replicas, "value", None), getattr(rank, "value", None)] == [1, 0]


def chosen_by_hand(call: ast.Call) -> bool:
    """Whether it draws a share that the script chose, whatever process it is: `num_replicas=10, rank=3`."""
    rank = argument_at(call, "rank", 2)
    return isinstance(rank, ast.Constant) and type(rank.value) is int and rank.value > 0


def reads_in_function(facts: Facts, read: ast.expr) -> list[ast.expr] | None:
    """The reads of the parameter that an argument is for; None where it is no argument of a plain function of this
    file, or where the parameter may be another thing than None and DistributedSamplers.
    """
    found = _parameter(facts, read)
    if found is None:
        return None
    f, name = found
    scope = facts.scopes.by_node[f]
    uses = facts.devices.uses_of_function(f)
    if name in scope.stores or not all(isinstance(use, ast.Call) for use in uses):
        return None
    given = [argument(call, f, name) for call in uses if isinstance(call, ast.Call)]
    unsaid = None in given
    if not all(goes(facts, value, 0) for value in given if value is not None):
        return None
    if unsaid and not goes(facts, _default(f, name), 0):
        return None
    return list(facts.scopes.reads(name, scope))


def _parameter(facts: Facts, read: ast.expr) -> tuple[ast.FunctionDef, str] | None:
    """The function that is called with `read`, and what it calls that."""
    up = facts.scopes.parents[read]
    call = facts.scopes.parents[up] if isinstance(up, ast.keyword) else up
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        return None
    scope = facts.scopes.scope_of(call.func).lookup(call.func.id)
    stores = scope.stores.get(call.func.id, []) if scope is not None else []
    f = stores[0] if len(stores) == 1 else None
    if not isinstance(f, ast.FunctionDef):
        return None
    names = [a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)]
    return next(((f, name) for name in names if argument(call, f, name) is read), None)


def goes(facts: Facts, value: ast.expr | None, depth: int) -> bool:
    """Whether a value is None or a DistributedSampler, in each of its branches."""
    if isinstance(value, ast.IfExp):
        return goes(facts, value.body, depth) and goes(facts, value.orelse, depth)
    if isinstance(value, ast.Call):
        return facts.names.resolve(value.func) == SAMPLER
    if not isinstance(value, ast.Name) or depth > 3:
        return isinstance(value, ast.Constant) and value.value is None
    scope: Scope | None = facts.scopes.scope_of(value).lookup(value.id)
    if scope is None or value.id in scope.params:
        return False
    made = _values(facts, scope.stores.get(value.id, []))
    return bool(made) and all(goes(facts, v, depth + 1) for v in made)


def _values(facts: Facts, stores: Iterable[ast.AST]) -> list[ast.expr | None]:
    parents = (facts.scopes.parents.get(s) for s in stores)
    found: list[ast.expr | None] = []
    for p in parents:
        plain = (isinstance(p, ast.Assign) and len(p.targets) == 1) or isinstance(p, ast.AnnAssign | ast.NamedExpr)
        found.append(p.value if plain else ast.Constant(0))  # type: ignore[union-attr]
    return found


def _default(f: ast.FunctionDef, name: str) -> ast.expr | None:
    positional = [*f.args.posonlyargs, *f.args.args]
    given = dict(zip([a.arg for a in positional][-len(f.args.defaults) :], f.args.defaults, strict=False))
    given |= {a.arg: d for a, d in zip(f.args.kwonlyargs, f.args.kw_defaults, strict=True) if d is not None}
    return given.get(name)

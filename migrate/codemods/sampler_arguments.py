"""A DistributedSampler that a function of the file is called with: `train(model, loader, epoch, sampler=sampler)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ..facts.arguments import argument, argument_at
from ..facts.distribution import SAMPLER
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts

# what the names of a world's size and of a rank have, or the calls that ask for them; and those of other shares
SAYS_PROCESSES = re.compile(
    r"rank|world|replica|proc(?!essed)|gpu|node|device|dist(?!il)|ddp|hvd|horovod|xla|\bx[mr]\.|ordinal|shard|parallel",
    re.IGNORECASE,
)
SAYS_SHARES = re.compile(
    r"fold|split|part(?!ner)|chunk|client|subset|slice|share(?!d)|piece|portion|\bcv\b|ensemble|member", re.IGNORECASE
)


def draws_all(call: ast.Call) -> bool:
    """Whether a DistributedSampler is that of one process."""
    replicas, rank = argument_at(call, "num_replicas", 1), argument_at(call, "rank", 2)
    return [getattr(replicas, "value", None), getattr(rank, "value", None)] == [1, 0]


def chosen_by_hand(facts: Facts, call: ast.Call) -> bool:
    """Whether it draws a share that the script chose, whatever process it is: `num_replicas=args.folds, rank=fold`."""
    replicas, rank = argument_at(call, "num_replicas", 1), argument_at(call, "rank", 2)
    if isinstance(rank, ast.Constant) and type(rank.value) is int and rank.value > 0:
        return True
    if replicas is None or rank is None or (isinstance(replicas, ast.Constant) and isinstance(rank, ast.Constant)):
        return False
    if any(_says(facts, e, SAYS_PROCESSES) for e in (replicas, rank)):
        return False
    return _is_gone_through(facts, rank) or any(_says(facts, e, SAYS_SHARES) for e in (replicas, rank))


def _says(facts: Facts, e: ast.expr, what: re.Pattern[str], depth: int = 0) -> bool:
    """Whether an expression has such names, or what its names are given has."""
    if what.search(ast.unparse(e)):
        return True
    for n in walk(e) if depth < 3 else ():
        scope = facts.scopes.scope_of(n).lookup(n.id) if isinstance(n, ast.Name) else None
        if scope is None or not isinstance(n, ast.Name):
            continue
        given = facts.devices.given(scope, n.id) if n.id in scope.params else facts.devices.assigned(n.id, scope)
        if any(_says(facts, v, what, depth + 1) for v in given or ()):
            return True
    return False


def _is_gone_through(facts: Facts, rank: ast.expr) -> bool:
    """`for i in range(clients)`: a process makes every share."""
    scope = facts.scopes.scope_of(rank).lookup(rank.id) if isinstance(rank, ast.Name) else None
    stores = scope.stores.get(rank.id, ()) if scope is not None and isinstance(rank, ast.Name) else ()
    ups = (facts.scopes.parents.get(s) for s in stores)
    return any(isinstance(up, (ast.For, ast.comprehension)) for up in ups)


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
        plain = (isinstance(p, ast.Assign) and len(p.targets) == 1) or isinstance(p, (ast.AnnAssign, ast.NamedExpr))
        found.append(p.value if plain else ast.Constant(0))  # type: ignore[union-attr]
    return found


def _default(f: ast.FunctionDef, name: str) -> ast.expr | None:
    positional = [*f.args.posonlyargs, *f.args.args]
    given = dict(zip([a.arg for a in positional][-len(f.args.defaults) :], f.args.defaults, strict=False))
    given |= {a.arg: d for a, d in zip(f.args.kwonlyargs, f.args.kw_defaults, strict=True) if d is not None}
    return given.get(name)

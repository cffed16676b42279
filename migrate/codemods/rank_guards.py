"""What stands under `if rank == 0:`: some of it the runtime does once by itself, and needs no guard."""

from __future__ import annotations

import ast
import re

from ..facts.devices import argument_at
from ..facts.nodes import walk
from ..facts.script import Facts
from .once import WRITERS

SENDS = {f"torch.distributed.{n}" for n in ("broadcast", "broadcast_object_list")}
# calls that give a value and do nothing else
PURE_HOMES = ("os.path.", "time.", "datetime.", "math.", "numpy.", "copy.")
PURE = set(
    "item format join state_dict keys values items cpu detach numpy mean sum tolist len round str int float min max "
    "range enumerate zip sorted list dict tuple get_last_lr parameters numel size dim strftime isoformat rstrip strip "
    "upper lower replace split vars get sqrt exp log abs global_avg __dict__".split()
)

SAYS = re.compile(r"(^|\.)(print|log|info|debug|warn|warning)$|^(logger|logging|log)\.", re.IGNORECASE)


def done_once(facts: Facts, branch: ast.If) -> bool:
    """Whether all that stands under a guard is harmless on every rank, or done once by itself: prints, saves."""
    parent = facts.scopes.parents.get(branch)
    if branch.orelse or (isinstance(parent, ast.If) and parent.orelse == [branch]):
        return False
    return all(_harmless(facts, s) for s in branch.body)


def loads_state(facts: Facts, branch: ast.If) -> bool:
    """Whether rank 0 loads there what it sends to the others, which every rank loads now: nothing is sent any more."""
    parent = facts.scopes.parents.get(branch)
    if branch.orelse or (isinstance(parent, ast.If) and parent.orelse == [branch]):
        return False
    loads = any(isinstance(n, ast.Call) and _last(n) == "load_state_dict" for s in branch.body for n in walk(s))
    return loads and all(_only_loads(facts, s) for s in branch.body)


def _only_loads(facts: Facts, s: ast.stmt) -> bool:
    """It loads, says so, or is harmless on every rank anyway."""
    if isinstance(s, ast.If):
        return _pure(facts, s.test) and all(_only_loads(facts, x) for x in (*s.body, *s.orelse))
    value = s.value if isinstance(s, ast.Assign | ast.Expr) else None
    if not isinstance(value, ast.Call):
        return _harmless(facts, s)
    if _last(value).startswith("load"):
        return True
    told = isinstance(s, ast.Expr) and bool(SAYS.search(ast.unparse(value.func)))
    return told or _harmless(facts, s)


def _last(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def sent_to_all(facts: Facts, branch: ast.If) -> str | None:
    """The name that a guarded block gives a value and a later broadcast sends: all have to compute it, then."""
    parent = facts.scopes.parents.get(branch)
    if isinstance(parent, ast.If) and parent.orelse == [branch]:
        return None
    scope = facts.scopes.scope_of(branch)
    given = {name for s in branch.body for n in walk(s) if (name := _changed(n)) is not None}
    for call in facts.walk(ast.Call) if given else ():
        if facts.names.resolve(call.func) not in SENDS or call.lineno <= branch.lineno:
            continue
        what = argument_at(call, "tensor", 0) or argument_at(call, "object_list", 0)
        if not isinstance(what, ast.Name) or facts.scopes.scope_of(call) is not scope:
            continue
        made = [m for s in scope.stores.get(what.id, ()) if isinstance(m := facts.scopes.parents.get(s), ast.Assign)]
        names = {what.id, *(n.id for m in made for n in walk(m.value) if isinstance(n, ast.Name))}
        if found := sorted(given & names):
            return found[0]
    return None


def _changed(n: ast.AST) -> str | None:
    """The name of what a node gives a value, or changes in its place: `x = y`, `x[0] = y`, `x.fill_(1)`."""
    if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store):
        return getattr(n.value, "id", None)
    if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr.endswith("_"):
        return getattr(n.func.value, "id", None)
    return n.id if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) else None


def _harmless(facts: Facts, s: ast.stmt) -> bool:
    if isinstance(s, ast.If | ast.For):
        first = s.test if isinstance(s, ast.If) else s.iter
        return _pure(facts, first) and all(_harmless(facts, x) for x in (*s.body, *s.orelse))
    if isinstance(s, ast.Pass):
        return True
    if isinstance(s, ast.Assign | ast.AugAssign | ast.AnnAssign):
        return s.value is None or _pure(facts, s.value)
    if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)):
        return isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)
    call = s.value
    once = facts.names.resolve(call.func) == "torch.save" or facts.short(call.func) == "print"
    return once and all(_pure(facts, a) for a in (*call.args, *(k.value for k in call.keywords)))


def _pure(facts: Facts, node: ast.expr) -> bool:
    """No call in it but such as give a value and do nothing else."""
    for n in walk(node):
        if isinstance(n, ast.Call):
            full = facts.names.resolve(n.func) or ""
            if not (full.startswith(PURE_HOMES) or full in WRITERS or _last(n) in PURE):
                return False
        elif isinstance(n, ast.Await | ast.Yield | ast.YieldFrom):
            return False
    return True

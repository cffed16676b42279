"""What stands under `if rank == 0:`: some of it the runtime does once by itself, and needs no guard."""

from __future__ import annotations

import ast
import re

from ..facts.nodes import walk
from ..facts.script import Facts
from .once import WRITERS

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

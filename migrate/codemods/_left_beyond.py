"""Parts of batches that a loop left on the CPU, and what is read below it keeps: `labels = torch.cat((labels, y))`.

The loop moves the other parts of its batches itself: what it keeps of these was on the CPU for whatever reads it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..facts.always_before import last_of
from ..facts.nodes import walk
from ..facts.script import Facts

JOINS = {f"torch.{name}" for name in ("cat", "concat", "concatenate", "stack", "hstack", "vstack")}


def left_beyond(facts: Facts, is_left: Callable[[Facts, ast.expr], bool]) -> Iterator[tuple[ast.expr, ast.Name]]:
    """What is kept, and the name that keeps it."""
    kinds: tuple[type[ast.Assign] | type[ast.AugAssign], ...] = (ast.Assign, ast.AugAssign)
    moving: dict[ast.AST, bool] = {}
    for s in (s for kind in kinds for s in facts.walk(kind)):
        target = s.target if isinstance(s, ast.AugAssign) else s.targets[0] if len(s.targets) == 1 else None
        hot = facts.loops.hot(s) if isinstance(target, ast.Name) else None
        if hot is None or not isinstance(target, ast.Name):
            continue
        if hot.loop not in moving:
            moving[hot.loop] = moves_itself(facts, hot.loop)
        if moving[hot.loop] and _is_read_below(facts, target, hot.loop):
            kept = _kept(facts, s.value, target.id, isinstance(s, ast.AugAssign))
            yield from ((e, target) for e in kept if is_left(facts, e))


def moves_itself(facts: Facts, loop: ast.AST) -> bool:
    """Whether a loop moves what it works on itself."""
    return any(facts.devices.moved(n) is not None for n in walk(loop, ast.Call))


def _kept(facts: Facts, value: ast.expr, name: str, added: bool) -> list[ast.expr]:
    """The y of `all = y`, `all = torch.cat((all, y))`, `all += [y]` and `all = all + [y]`."""
    if isinstance(value, ast.IfExp) and not added:
        return [e for way in (value.body, value.orelse) for e in _kept(facts, way, name, added)]
    if isinstance(value, ast.BinOp) and _is_name(value.left, name):
        value, added = value.right, True
    if added:
        return value.elts if isinstance(value, (ast.List, ast.Tuple)) else []
    if isinstance(value, ast.Call) and facts.names.resolve(value.func) in JOINS:
        of = value.args[0] if value.args else next((k.value for k in value.keywords if k.arg == "tensors"), None)
        parts = of.elts if isinstance(of, (ast.List, ast.Tuple)) else []
        return parts if any(_is_name(p, name) for p in parts) else []
    return [value]


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_read_below(facts: Facts, target: ast.Name, loop: ast.AST) -> bool:
    """Whether anything below the loop reads what the name is given here, and nothing moves what it holds."""
    scope = facts.scopes.scope_of(target).lookup(target.id)
    reads = list(facts.scopes.reads(target.id, scope)) if scope is not None else []
    inside = set(walk(loop))
    if all(n in inside or n.lineno <= target.lineno for n in reads):
        return False
    reads = [n for n in reads if scope is not None and target in last_of(facts, n, facts.placed.reaching(n, scope))]
    below = any(n not in inside and n.lineno > target.lineno for n in reads)
    return below and not any(moved_on(facts, n) for n in reads)


def moved_on(facts: Facts, read: ast.Name) -> bool:
    """The x of `x.to(device)` and of `Variable(x.float()).cuda()`."""
    for up in facts.scopes.ancestors(read):
        if isinstance(up, ast.stmt):
            return False
        receiver = facts.devices.moved(up) if isinstance(up, ast.Call) else None
        if receiver is not None and any(n is read for n in walk(receiver)):
            return True
    return False

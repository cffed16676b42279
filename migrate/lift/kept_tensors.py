"""Tensors that the script keeps for its networks outside the Module: they go where the network is when it is called.

`fixed = torch.randn(8, 4).cuda()`, for a function with `net(fixed)` in it: nothing is placed yet where it is made.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..codemods.place_like_inputs import PlaceLikeInputs
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..facts.unplaced import OF_NETWORKS, is_network
from ..report import Edit
from .shape.edits import Edits

CODE = PlaceLikeInputs.code


def place_kept(facts: Facts, edits: Edits, line: Callable[[int], int]) -> list[Edit]:
    """`net(fixed.to(next(net.parameters()).device))`. `line`: of the original, for one of this text."""
    said = []
    fitting = next((a for a in facts.attributes.get("fit", ()) if _is_called(facts, a)), None)
    if fitting is None:
        return []
    fit, home = fitting.lineno, facts.scopes.scope_of(fitting)
    for s in getattr(home.node, "body", ()):
        move = _move(facts, s) if s.lineno < fit else None
        if move is None or facts.is_fixed(move):
            continue
        assert isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)
        reads = _reads(facts, s.targets[0], home, fit)
        if not reads:
            continue
        edits.replace(*facts.text.method_of(move), "")
        for read, network in reads:
            edits.replace(*facts.text.span(read), f"{read.id}.to(next({network}.parameters()).device)")
        row, column, _, _ = facts.text.key(move)
        says = f"`{facts.short(move)}` goes where the network is that is given it"
        said.append(Edit(line(row), column + 1, CODE, says))
    return said


def _is_called(facts: Facts, node: ast.expr) -> bool:
    up = facts.scopes.parents.get(node)
    return isinstance(up, ast.Call) and up.func is node


def _move(facts: Facts, s: ast.stmt) -> ast.Call | None:
    """The `torch.randn(8, 4).cuda()` of a statement that gives it a name."""
    named = isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)
    call = s.value if named else None  # type: ignore[attr-defined]
    if not isinstance(call, ast.Call) or facts.devices.moved(call) is None:
        return None
    others = len(facts.devices.device_arguments(call)) < len(call.args) + len(call.keywords)
    return None if others and call.func.attr == "to" else call  # type: ignore[attr-defined]


def _reads(facts: Facts, name: ast.Name, home: Scope, fit: int) -> list[tuple[ast.Name, str]]:
    """Where a name is read once networks are placed, with the one given it; none where anything else reads it."""
    reads = list(facts.scopes.reads(name.id, home))
    if len(home.stores[name.id]) != 1 or any(name.id in s.globals for s in facts.scopes.by_node.values()):
        return []
    found = []
    for read in reads:
        up = facts.scopes.parents.get(read)
        call = facts.scopes.parents.get(up) if isinstance(up, ast.keyword) else up
        within = facts.scopes.scope_of(read) is not home
        network = call.func if isinstance(call, ast.Call) else None
        if not (isinstance(network, ast.Name) and _is_network(facts, network)) or facts.is_fixed(read):
            return []
        if within or read.lineno > fit:  # above, neither is placed
            found.append((read, network.id))
    return found


def _is_network(facts: Facts, name: ast.Name) -> bool:
    """`net` where the Module, or the script, asks `net.parameters()` and the like, or that is given nothing else."""
    asked = (a.value for m in OF_NETWORKS for a in facts.attributes.get(m, ()))
    known = {v.attr if isinstance(v, ast.Attribute) else getattr(v, "id", None) for v in asked}
    return name.id in known or is_network(facts, name)

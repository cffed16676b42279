"""T2: a choice between a tensor on a device and the same tensor elsewhere: where it follows its input it needs none."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..facts.choice import asks_for, asks_for_card
from ..facts.effects import only_asks
from ..facts.nodes import walk
from ..facts.own_movers import MOVERS
from ..facts.script import Facts
from ._without_moves import plain
from .base import Change, Codemod
from .branch_rewrites import body_only, else_only
from .rewrites import take_branch

Place = Callable[[Facts, ast.Call], str | None]


def choices(codemod: Codemod, facts: Facts, place: Place) -> Iterator[Change]:
    """`torch.zeros(2).cuda() if use_cuda else torch.zeros(2)`, `if use_cuda: noise = noise.cuda()`

    `place`: what a call's tensor is placed like, None where that does not show.
    """
    for choice in facts.walk(ast.IfExp):
        for side, other in (("body", choice.orelse), ("orelse", choice.body)):
            call = getattr(choice, side)
            receiver = facts.devices.moved(call) if isinstance(call, ast.Call) else None
            if receiver is None or facts.placed.by_runtime(receiver) or not _is_any(facts, choice.test, [receiver]):
                continue
            alike = facts.text.get(receiver) == facts.text.get(other) and not facts.is_fixed(choice)
            whole = len(facts.devices.device_arguments(call)) == len(call.args) + len(call.keywords)
            if alike and (whole or call.func.attr != "to") and place(facts, call) is not None:
                says = f"`{facts.short(choice)}` is the same wherever its input is"
                yield Change(choice, codemod.edit(facts, choice, says), take_branch(side), (choice.test, other))
    for branch in _branches(facts):
        yield from _branch(codemod, facts, branch, place)


def _branches(facts: Facts) -> list[ast.If]:
    """The conditions that hold a statement which moves something, right below them."""
    found: dict[ast.If, None] = {}
    for call in facts.walk(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in MOVERS:
            up = facts.scopes.parents.get(facts.scopes.statement_of(call))
            if isinstance(up, ast.If) and up not in found and facts.devices.moved(call) is not None:
                found[up] = None
    return list(found)


def _branch(codemod: Codemod, facts: Facts, branch: ast.If, place: Place) -> Iterator[Change]:
    up = facts.scopes.parents.get(branch)
    chained = isinstance(up, ast.If) and up.orelse == [branch]
    if chained or (branch.orelse and isinstance(branch.orelse[0], ast.If)) or not only_asks(facts.names, branch.test):
        return
    moved, other = (_moves(facts, block) for block in (branch.body, branch.orelse))
    if other and not moved:
        moved, rewrite, gone = other, else_only, branch.body
    elif moved and not other:
        rewrite, gone = body_only, branch.orelse
    else:
        return
    receivers = [facts.devices.moved(c) for c in moved]
    own = [c for c, r in zip(moved, receivers, strict=True) if r is not None and not facts.placed.by_runtime(r)]
    if not branch.orelse and not _is_any(facts, branch.test, [r for r in receivers if r is not None]):
        return
    if not own or not all(place(facts, c) is not None for c in own) or facts.is_fixed(branch):
        return
    body, orelse = ([text for s in b if (text := plain(facts, s))] for b in (branch.body, branch.orelse))
    if body == orelse:
        says = f"`if {facts.short(branch.test)}:` removed: what it moves is the same wherever its input is"
        yield Change(branch, codemod.edit(facts, branch, says), rewrite, (branch.test, *gone))


def _is_any(facts: Facts, test: ast.expr, moved: list[ast.expr]) -> bool:
    """Whether what is moved may be moved whatever the condition says: it is for a card, or there is a tensor anyway."""
    if asks_for_card(facts, test):
        return True
    return only_asks(facts.names, test) and not asks_for(test, moved) and all(map(facts.tensors.is_tensor, moved))


def _moves(facts: Facts, block: list[ast.stmt]) -> list[ast.Call]:
    calls = [n for s in block for n in walk(s, ast.Call) if isinstance(n.func, ast.Attribute)]
    return [c for c in calls if c.func.attr in MOVERS and facts.devices.moved(c) is not None]  # type: ignore[attr-defined]

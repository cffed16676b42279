"""T1: where a module is started itself, no Trainer places what it moves: that goes to the runtime's device.

`net = Net().to(device)` below the main guard of a file that the script imports -> `.to(Runtime.shared().device)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.nodes import walk
from ..facts.own_main import is_of_own_main, own_main
from ..facts.runtime_names import imported_as
from ..facts.script import Facts
from ..report import Note
from ._without_moves import what_stays
from .base import Change
from .remove_device_calls import RemoveDeviceCalls

HANDLE = "Runtime"
ALONE = "where this file is started itself"


def placed_by_itself(facts: Facts, changes: list[Change], of_lifted: bool) -> tuple[list[Change], list[Note]]:
    """The changes, with those that take moves away in a module's own main part made to moves to the runtime's device.

    `of_lifted`: loops over batches get them from where a Trainer, or this Runtime, has its device. What else a function
    moved, that the main part calls, nobody would move there: then it stays on the CPU with all else, and is told of.
    """
    own = own_main(facts)
    moves = [c for c in changes if c.edit.code == RemoveDeviceCalls.code] if own else []
    goes = [c for c in moves if is_of_own_main(facts, c.node)]
    calls = list(_moves(facts, goes))
    if not calls:
        return changes, []
    edit = RemoveDeviceCalls().edit
    called = _called(facts, own)
    left = [c for c in moves if c not in goes and called.intersection(facts.scopes.ancestors(c.node))]
    if not all(of_lifted and _of_batches(facts, c.node) for c in left):
        told = edit(facts, calls[0], f"`{facts.short(calls[0])}` removed: {ALONE} nothing places it on a device")
        return changes, [Note(told.line, told.column, told.code, told.message)]
    where = f"{imported_as(facts, HANDLE)}.shared().device"
    new = []
    for call in calls:
        kept = what_stays(facts, call)
        gone = tuple(a for i, a in enumerate([*call.args, *call.keywords]) if i not in kept)
        says = f"`{facts.short(call)}` goes to `{where}`: {ALONE} nothing else places it"
        new.append(Change(call, edit(facts, call, says), _to(where, kept), gone))
    return [*(c for c in changes if c not in goes), *new], []


def _moves(facts: Facts, changes: list[Change]) -> Iterator[ast.Call]:
    """The moves that changes take away."""
    within = {n for c in changes for n in walk(c.node)}
    for call in facts.walk(ast.Call) if within else ():
        receiver = facts.devices.moved(call) if call in within else None
        placed = receiver is not None and facts.placed.by_runtime(receiver)
        if (placed or facts.placed.becomes_module(call)) and not facts.is_fixed(call):
            yield call


def _called(facts: Facts, own: frozenset[ast.AST]) -> set[ast.AST]:
    """The functions and classes of the file that its main part reaches; a network is given what is placed already."""
    there = {s.name: s for s in facts.tree.body if isinstance(s, (ast.FunctionDef, ast.ClassDef))}
    there = {name: s for name, s in there.items() if s not in facts.classes.modules}
    found: set[ast.AST] = set()
    queue = list(own)
    while queue:
        names = (n.id for n in walk(queue.pop(), ast.Name) if n.id in there)
        new = {there[name] for name in names} - found - own
        found |= new
        queue += new
    return found


def _of_batches(facts: Facts, node: ast.AST) -> bool:
    """Whether it stands in a loop over a loader."""
    return any(isinstance(up, ast.For) and facts.loops.is_loader(up.iter) for up in facts.scopes.ancestors(node))


def _to(where: str, kept: list[int]) -> Any:
    """`x.cuda()`, and `x.to(device, dtype)` with what says something else."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        args = [cst.Arg(cst.parse_expression(where)), *(updated.args[i] for i in kept)]
        return updated.with_changes(func=updated.func.with_changes(attr=cst.Name("to")), args=args)

    return rewrite

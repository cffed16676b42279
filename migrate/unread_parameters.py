"""T9: the rank and the world that a function was given go once nothing in the result reads them."""

from __future__ import annotations

import ast

from .codemods.base import Change, apply
from .codemods.every import outermost
from .codemods.remove_unused_devices import RemoveUnusedDevices, parameter_changes
from .facts.effects import only_asks
from .facts.process_names import RANK_NAME, WORLD_NAME
from .facts.script import Facts
from .facts.world import PLAIN
from .line_map import line_map
from .report import Edit
from .unread_starts import starts


def without_unread_parameters(before: Facts, after: Facts) -> tuple[Facts, list[Edit]]:
    """The result without parameters for processes that it reads nowhere, and the original did."""
    edits: list[Edit] = []
    while changes := _changes(before, after):
        changes = outermost(after, changes)
        line = line_map(after.text.text, before.text.text)
        edits += [Edit(line(e.line), e.column, e.code, e.message, e.safe) for e in (c.edit for c in changes)]
        after = Facts(apply(after, changes))
    return after, edits


def _changes(before: Facts, after: Facts) -> list[Change]:
    codemod, found = RemoveUnusedDevices(), []
    functions = {f.name: f for f in before.walk(ast.FunctionDef)}
    for f in after.walk(ast.FunctionDef):
        scope, old = after.scopes.by_node[f], functions.get(f.name)
        if old is None or after.classes.holder(f) is not None:
            continue
        for name, arg in scope.params.items():
            if name in scope.stores or any(True for _ in after.scopes.reads(name, scope)):
                continue
            if not _was_of_processes(before, old, name) or arg in (f.args.vararg, f.args.kwarg):
                continue
            changes = parameter_changes(codemod, after, f, arg, "nothing in it reads it any more")
            given = [c.gone[0] for c in changes if c.node is not f]
            if all(only_asks(after.names, value) for value in given):
                found += changes
    return found


def _was_of_processes(before: Facts, f: ast.FunctionDef, name: str) -> bool:
    """Whether the original read the parameter, and it was a rank, a number of processes or a card."""
    scope = before.scopes.by_node[f]
    reads = list(before.scopes.reads(name, scope)) if name in scope.params else []
    if reads and (RANK_NAME.search(name) or WORLD_NAME.search(name)):
        return True
    if any(starts(before, r) for r in reads):
        return True
    known = [before.worlds.value(r, PLAIN) for r in reads]
    return any(k is not None and k.asked for k in known) or any(before.devices.is_number(r) for r in reads)

"""Devices that the lift was the last to read: inside a Module the device is the Module's own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .codemods.remove_unused_devices import RemoveUnusedDevices
from .facts.effects import only_asks
from .facts.process_names import RANK_NAME, WORLD_NAME
from .facts.script import Facts
from .facts.world import PLAIN
from .report import Edit, Note

CODE = RemoveUnusedDevices.code


def without_unread_devices(before: Facts, after: Facts) -> tuple[Facts, list[Edit]]:
    """The result without assignments of devices that it reads nowhere, and the original did."""
    edits: list[Edit] = []
    while True:
        after, more = _without(before, after)
        if not more:
            return after, edits
        edits += more


def _without(before: Facts, after: Facts) -> tuple[Facts, list[Edit]]:
    cuts, edits = [], []
    codemod = RemoveUnusedDevices()
    for name, s in _unread(after):
        assigned = [n for n in before.walk(ast.Name) if n.id == name and isinstance(n.ctx, ast.Store)]
        read = any(n.id == name and isinstance(n.ctx, ast.Load) for n in before.walk(ast.Name))
        counts = _of_processes(before, assigned) or _named_so(after, name, s.value)
        if not assigned or not read or not (counts or codemod._goes(after, name, s.value)):
            continue
        start, stop = after.text.span(s)
        first, last = after.text.line_span(s.lineno, s.end_lineno or s.lineno)
        rest = after.text.text[stop:last].strip()
        if after.text.text[first:start].strip() or (rest and not rest.startswith("#")):
            continue  # another statement on the line
        says = f"`{after.short(s)}` removed: nothing reads it any more"
        edits.append(Edit(assigned[0].lineno, assigned[0].col_offset + 1, CODE, says))
        cuts.append((first, last))
    text = after.text.text
    for first, last in sorted(cuts, reverse=True):
        text = text[:first] + text[last:]
    return (Facts(text) if cuts else after), edits


def _of_processes(before: Facts, assigned: list[ast.Name]) -> bool:
    """`world_size = 1`, which was `world_size = torch.cuda.device_count()`."""
    made = [before.scopes.parents.get(n) for n in assigned]
    known = [before.worlds.value(m.value, PLAIN) for m in made if isinstance(m, ast.Assign)]
    return len(known) == len(made) and all(k is not None and k.asked for k in known)


def _named_so(after: Facts, name: str, value: ast.expr) -> bool:
    """`rank = args.node`, which was `rank = args.node * args.gpus + gpu`: no more than a look at what is there."""
    return bool(RANK_NAME.match(name) or WORLD_NAME.match(name)) and only_asks(after.names, value)


READS = re.compile(r"line \d+ (may )?reads? it|other files may read it")


def still_read(notes: list[Note], after: Facts, removed: list[Edit]) -> list[Note]:
    """The notes without those of a device that nothing reads in the result."""
    gone = {(e.line, e.column) for e in removed}
    notes = [n for n in notes if n.code != CODE or (n.line, n.column) not in gone]
    read = {n.id for n in after.walk(ast.Name) if isinstance(n.ctx, ast.Load)}
    read |= {f"{a.value.id}.{a.attr}" for a in after.walk(ast.Attribute) if isinstance(a.value, ast.Name)}
    stays = [n.message.split("` stays: ") for n in notes]
    return [
        n
        for n, parts in zip(notes, stays, strict=True)
        if len(parts) < 2 or parts[0].strip("`") in read or not READS.match(parts[1])
    ]


def _unread(facts: Facts) -> Iterator[tuple[str, ast.Assign]]:
    for scope in facts.scopes.by_node.values():
        if scope.is_class:
            continue
        for name, stores in scope.stores.items():
            made = [facts.scopes.parents.get(s) for s in stores]
            if name in scope.params or any(True for _ in facts.scopes.reads(name, scope)):
                continue
            for s in made:
                if isinstance(s, ast.Assign) and len(s.targets) == 1 and not _alone(facts, s):
                    yield name, s


def _alone(facts: Facts, s: ast.Assign) -> bool:
    """The only statement of its block, which cannot be left empty."""
    up = facts.scopes.parents.get(s)
    return any(getattr(up, field, None) == [s] for field in ("body", "orelse", "finalbody"))

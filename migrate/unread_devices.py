"""Devices that the lift was the last to read: inside a Module the device is the Module's own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from .codemods.remove_unused_devices import RemoveUnusedDevices
from .codemods.unread_options import unread_options
from .facts.effects import only_asks
from .facts.nodes import walk
from .facts.options import option_name
from .facts.process_names import RANK_NAME, WORLD_NAME
from .facts.script import Facts
from .facts.world import PLAIN
from .report import Edit, Note
from .unread_starts import starts

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
    cuts: list[tuple[int, int, str]] = []
    edits = []
    gone: set[ast.stmt] = set()
    for s, names in _unread(after):
        going = {name: at for name, value in names.items() if (at := _asked_at(before, after, name, value)) is not None}
        start, stop = after.text.span(s)
        first, last = after.text.line_span(s.lineno, s.end_lineno or s.lineno)
        rest = after.text.text[stop:last].strip()
        if not going or after.text.text[first:start].strip() or (rest and not rest.startswith("#")):
            continue  # another statement on the line
        left = _left(after, s, going)
        if after.devices.effects.has(s.value):
            if isinstance(s.targets[0], ast.Tuple):
                continue
            left = _value_alone(after, s)
        if not left and _last_of_block(after, s, gone):
            continue
        says = f"`{after.short(s)}` removed: nothing reads it any more"
        if left and not isinstance(s.targets[0], ast.Tuple):
            says = f"`{after.short(s)}` became `{after.short(s.value)}`: nothing reads what it gives, and it does more"
        elif left:
            says = f"`{'`, `'.join(going)}` removed: nothing reads {'it' if len(going) == 1 else 'them'} any more"
        at = next(iter(going.values()))
        edits.append(Edit(at.lineno, at.col_offset + 1, CODE, says))
        cuts.append((start, stop, left) if left else (_above(after, s), last, ""))
        gone |= set() if left else {s}
    for holder, edit in _options(before, after, gone) if gone else ():
        edits.append(edit)
        cuts.append((_above(after, holder), after.text.line_span(holder.lineno, holder.end_lineno or 0)[1], ""))
    text = after.text.text
    for first, last, left in sorted(cuts, reverse=True):
        text = text[:first] + left + text[last:]
    return (Facts(text) if cuts else after), edits


def _options(before: Facts, after: Facts, gone: set[ast.stmt]) -> Iterator[tuple[ast.Expr, Edit]]:
    """The parser's lines of options that the statements which go were the last to read, told of where they stood."""
    after.read_elsewhere, after.defined_elsewhere = before.read_elsewhere, before.defined_elsewhere
    after.imported = before.imported
    declared = {option_name(h.value): h for h in before.walk(ast.Expr)}
    for change in unread_options(RemoveUnusedDevices(), after, {n for s in gone for n in walk(s)}):
        holder = change.node
        at = declared.get(option_name(holder.value)) if isinstance(holder, ast.Expr) else None
        if at is None or not isinstance(holder, ast.Expr):
            continue
        first, last = after.text.line_span(holder.lineno, holder.end_lineno or holder.lineno)
        if after.text.get(holder) == after.text.text[first:last].strip() and not _last_of_block(after, holder, gone):
            yield holder, replace(change.edit, line=at.lineno, column=at.col_offset + 1)


def _above(after: Facts, s: ast.stmt) -> int:
    """Where the lines of a statement begin that goes: with the blank ones above it that stand below it, too."""
    first, below, end = s.lineno, (s.end_lineno or s.lineno) + 1, len(after.text.starts)
    while first > 1 and below <= end and _is_blank(after, first - 1) and _is_blank(after, below):
        first, below = first - 1, below + 1
    return after.text.line_span(first, first)[0]


def _is_blank(facts: Facts, line: int) -> bool:
    return not facts.text.text[slice(*facts.text.line_span(line, line))].strip(" \t\r\n")


def _asked_at(before: Facts, after: Facts, name: str, value: ast.expr) -> ast.Name | None:
    """Where the original assigned a name that it read, if it is one of a device or of processes, and none that another
    file takes.
    """
    assigned = [n for n in before.walk(ast.Name) if n.id == name and isinstance(n.ctx, ast.Store)]
    at_top = any(before.scopes.scope_of(n) is before.scopes.module for n in assigned)
    if at_top and (before.is_taken_beside(name) or (before.taken is not None and before.taken(name))):
        return None
    read = [n for n in before.walk(ast.Name) if n.id == name and isinstance(n.ctx, ast.Load)]
    counts = _of_processes(before, assigned) or _named_so(after, name, value)
    if before.by_hand and not counts and only_asks(after.names, value):
        counts = any(starts(before, n) for n in read)
    goes = assigned and read and (counts or RemoveUnusedDevices()._goes(after, name, value))
    return assigned[0] if goes else None


def _left(after: Facts, s: ast.Assign, going: dict[str, ast.Name]) -> str:
    """What is left of `rank, n = 0, 3` without some of its names."""
    target, value = s.targets[0], s.value
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return ""
    stays = [i for i, t in enumerate(target.elts) if not (isinstance(t, ast.Name) and t.id in going)]
    sides = [", ".join(after.text.get(part.elts[i]) for i in stays) for part in (target, value)]
    return " = ".join(sides) if stays else ""


def _value_alone(after: Facts, s: ast.Assign) -> str:
    """`setup(seed)` of `device = setup(seed)`, with the parentheses around it."""
    _, target = after.text.span(s.targets[0])
    return after.text.text[target : after.text.span(s)[1]].partition("=")[2].lstrip()


def _of_processes(before: Facts, assigned: list[ast.Name]) -> bool:
    """`world_size = 1`, which was `world_size = torch.cuda.device_count()`."""
    made = [_given(before, n) for n in assigned]
    known = [before.worlds.value(m, PLAIN) for m in made if m is not None]
    return len(known) == len(made) and all(k is not None and k.asked for k in known)


def _given(facts: Facts, name: ast.Name) -> ast.expr | None:
    """What an assignment gives a name, alone or beside others."""
    up = facts.scopes.parents.get(name)
    if isinstance(up, ast.Tuple):
        s = facts.scopes.parents.get(up)
        whole = s.value if isinstance(s, ast.Assign) and s.targets == [up] else None
        return whole.elts[up.elts.index(name)] if _is_pair(up, whole) else None  # type: ignore[union-attr]
    return up.value if isinstance(up, ast.Assign) else None


def _is_pair(target: ast.Tuple, value: ast.expr | None) -> bool:
    """`a, b = x, y`"""
    plain = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
    return plain and not any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))  # type: ignore[union-attr]


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


def _unread(facts: Facts) -> Iterator[tuple[ast.Assign, dict[str, ast.expr]]]:
    """Assignments, and what each gives to names that nothing reads."""
    found: dict[ast.Assign, dict[str, ast.expr]] = {}
    for scope in facts.scopes.by_node.values():
        if scope.is_class:
            continue
        for name, stores in scope.stores.items():
            if name in scope.params or any(True for _ in facts.scopes.reads(name, scope)):
                continue
            for store in stores:
                up = facts.scopes.parents.get(store)
                s = facts.scopes.parents.get(up) if isinstance(up, ast.Tuple) else up
                value = _given(facts, store) if isinstance(store, ast.Name) else None
                if isinstance(s, ast.Assign) and len(s.targets) == 1 and value is not None:
                    found.setdefault(s, {})[name] = value
    yield from found.items()


def _last_of_block(facts: Facts, s: ast.stmt, gone: set[ast.stmt]) -> bool:
    """The only statement of its block that does not go: a block cannot be left empty."""
    up = facts.scopes.parents.get(s)
    blocks = (getattr(up, field, None) for field in ("body", "orelse", "finalbody"))
    return any(isinstance(b, list) and [other for other in b if other not in gone] == [s] for b in blocks)

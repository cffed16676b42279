"""T9: what only told processes where and as how many to meet, and nothing in the result reads: `size = 2`, options."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .codemods._unread_branches import spell
from .codemods.base import Change, apply
from .codemods.empty_functions import WHY
from .codemods.every import outermost
from .codemods.plain_branches import PlainBranches
from .codemods.unread_options import seen_whole
from .facts.distribution import SPAWN
from .facts.effects import only_asks
from .facts.nodes import walk
from .facts.options import option_name
from .facts.process_names import D
from .facts.script import Facts
from .facts.started import makes_process
from .line_map import line_map
from .report import Edit, Note, at_line

MEETS = {D + "init_process_group", *SPAWN}


def starts(facts: Facts, read: ast.AST) -> bool:
    """Whether a value is read where processes are started or connected: `mp.spawn(work, args=(port,), nprocs=size)`."""
    calls = (up for up in facts.scopes.ancestors(read) if isinstance(up, ast.Call))
    return any(facts.names.resolve(c.func) in MEETS or makes_process(facts, c) for c in calls)


def without_unread_starts(before: Facts, after: Facts) -> tuple[Facts, list[Edit], list[Note]]:
    """The result without options that only the start of processes read, and calls that give nothing that is read."""
    codemod, edits, notes = PlainBranches(), list[Edit](), list[Note]()
    while changes := [*_options(codemod, before, after, notes), *_setups(codemod, before, after)]:
        changes = outermost(after, changes)
        line = line_map(after.text.text, before.text.text)
        edits += [at_line(c.edit, line) for c in changes]
        after = Facts(apply(after, changes))
    return after, edits, notes


def _options(codemod: PlainBranches, before: Facts, after: Facts, notes: list[Note]) -> Iterator[Change]:
    """`parser.add_argument("--world-size")`, which mp.spawn alone read."""
    holders = {n: h for h in after.walk(ast.Expr) if (n := option_name(h.value)) and not after.attributes.get(n)}
    if not holders or before.is_library:
        return
    declared = {n for h in holders.values() for n in walk(h)}
    said = {k.value for k in after.walk(ast.Constant) if k not in declared}
    whole = seen_whole(after)
    for name, holder in holders.items():
        reads = [a for a in before.attributes.get(name, ()) if isinstance(a.ctx, ast.Load)]
        if name in said or name in before.read_elsewhere or not any(starts(before, a) for a in reads):
            continue
        if whole is not None:
            line, column, _, _ = after.text.key(holder)
            line = line_map(after.text.text, before.text.text)(line)
            says = f"`{whole.id}.{name}` stays, and says nothing any more: all options are looked at as a whole"
            note = Note(line, column + 1, codemod.code, says)
            notes += [note] if note not in notes else []
            continue
        says = f"`{after.short(holder)}` removed: nothing reads args.{name} any more, {WHY}; {spell(holder.value)}"
        yield Change(holder, codemod.edit(after, holder, says), None, (holder,))


def _setups(codemod: PlainBranches, before: Facts, after: Facts) -> Iterator[Change]:
    """`rank, world = setup()`, where setup() connected processes, and only gives back numbers that nothing reads."""
    connects = {f.name for f in before.walk(ast.FunctionDef) if _talks(before, f)}
    for f in after.walk(ast.FunctionDef) if not before.is_library else ():
        if f.name not in connects or f.decorator_list or not all(_only_gives(after, s) for s in f.body):
            continue
        uses = after.devices.uses_of_function(f)
        calls = [after.scopes.parents.get(u) if isinstance(u, ast.Call) else None for u in uses]
        if not uses or not all(_gives_nothing(after, s) for s in calls):
            continue
        says = f"{f.name}() removed: {WHY}"
        yield Change(f, codemod.edit(after, f, says), None, (f,))
        for s in calls:
            if s is not None:
                yield Change(s, codemod.edit(after, s, f"`{after.short(s)}` removed: {WHY}"), None, (s,))


def _talks(facts: Facts, f: ast.FunctionDef) -> bool:
    return any((facts.names.resolve(n.func) or "").startswith(D) for n in walk(f, ast.Call))


def _only_gives(facts: Facts, s: ast.stmt) -> bool:
    """A docstring, or a value that is no more than looked at."""
    if isinstance(s, ast.Expr):
        return isinstance(s.value, ast.Constant)
    plain = isinstance(s, ast.Return) or (isinstance(s, ast.Assign) and all(_is_name(t) for t in s.targets))
    value = s.value if isinstance(s, (ast.Return, ast.Assign)) else None
    return plain and (value is None or only_asks(facts.names, value))


def _is_name(target: ast.expr) -> bool:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return all(isinstance(t, ast.Name) for t in parts)


def _gives_nothing(facts: Facts, s: ast.AST | None) -> bool:
    return isinstance(s, ast.Expr) or (isinstance(s, ast.Assign) and _unread(facts, s))


def _unread(facts: Facts, s: ast.Assign) -> bool:
    names = [n for t in s.targets for n in walk(t, ast.Name)] if all(map(_is_name, s.targets)) else []
    scope = facts.scopes.scope_of(s)
    return bool(names) and not any(True for n in names for _ in facts.scopes.reads(n.id, scope))

"""T4: a sampler put into the keywords of a DataLoader, and what stands beside it because of it.

`options["sampler"] = DistributedSampler(d)` becomes `options["shuffle"] = True`. Under a condition it goes, with the
branch where nothing else is left of it: that was the one of several processes, and the other is the plain script's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.arguments import argument_at
from ..facts.effects import asks_alone, does_more
from ..facts.nodes import walk
from ..facts.script import Facts
from .base import Change, Codemod
from .branch_rewrites import first_gone
from .restored_shuffle import asks_of_data, evaluates, restored
from .rewrites import source
from .sampler_uses import Use, loaders_of

WHY = "the runtime divides the batches"


def entry_changes(
    codemod: Codemod, facts: Facts, s: ast.Assign, shuffle: str | None, use: Use, gone_tests: set[ast.AST]
) -> Iterator[Change]:
    """`options["sampler"] = ...`: the entry becomes `shuffle`, or goes."""
    branch = _branch_of(facts, s)
    assert isinstance(s.targets[0], ast.Subscript)
    loaders = loaders_of(facts, s.targets[0].value)
    plain = branch is None or asks_of_data(branch.test)
    beside = [t for t in facts.scopes.block_of(s) if _is_entry(t, s.targets[0].value, "shuffle")] if loaders else []
    asked = next((t for t in beside if isinstance(t, ast.Assign) and not isinstance(t.value, ast.Constant)), None)
    if asked is not None:  # options["shuffle"] = sampler is None
        new, taken = restored(facts, use, [s, *loaders], asked.value, shuffle, gone_tests)
        use.restored += [new] if new else []
        if taken and new:
            says = f"`{facts.short(asked)}`: shuffle={new} restored: {WHY}"
            yield Change(asked.value, codemod.edit(facts, asked, says), source(new), (asked.value,))
        stays = bool(new) or not taken
        gone: list[ast.stmt] = [s, *(t for t in beside if t is not asked or not stays)]
    elif shuffle is not None and plain and not any(evaluates(facts, c) for c in (s, *loaders)):
        says = f"`{facts.short(s)}`: sampler removed, shuffle={shuffle} restored: {WHY}"
        target = f'{facts.text.get(s.targets[0].value)}["shuffle"]'
        yield Change(s.targets[0], codemod.edit(facts, s, says), source(target), told=False)
        yield Change(s.value, codemod.edit(facts, s, says), source(shuffle), (s.value,))
        gone = [*beside]
    else:
        gone = [s, *beside]
    yield from without(codemod, facts, gone, "True" if shuffle is not None else None)


def told_off(facts: Facts, use: Use) -> list[ast.stmt]:
    """`shuffle = False`, `options["shuffle"] = False` beside the sampler: a DataLoader does not shuffle beside one."""
    holders = [facts.scopes.parents.get(r) for r in use.handed]
    calls = [facts.scopes.parents.get(h) if isinstance(h, ast.keyword) else h for h in holders]
    named = {ast.unparse(a) for c in calls if isinstance(c, ast.Call) and (a := argument_at(c, "shuffle", 2))}
    entries = [c.targets[0] for c in calls if isinstance(c, ast.Assign)]  # options["sampler"] = sampler
    named |= {f"{ast.unparse(t.value)}['shuffle']" for t in entries if isinstance(t, ast.Subscript)}
    return [
        beside
        for s in use.statements
        for beside in (facts.scopes.block_of(s) if _branch_of(facts, s) is not None else [])
        if isinstance(beside, ast.Assign)
        and isinstance(beside.value, ast.Constant)
        and beside.value.value is False
        and {ast.unparse(t) for t in beside.targets} <= named
    ]


def without(codemod: Codemod, facts: Facts, gone: list[ast.stmt], shuffle: str | None) -> Iterator[Change]:
    """Statements go; the branch with them where nothing is left of it and the other one says what they said.

    A name that the other branch gives too has to have a value in this one: `shuffle`, where more is left of the branch.
    """
    branches = list(dict.fromkeys(b for s in gone if (b := _branch_of(facts, s)) is not None))
    taken: set[ast.stmt] = set()
    for branch in branches:
        given = {ast.unparse(t) for s in branch.orelse if isinstance(s, ast.Assign) for t in s.targets}
        own = [s for s in branch.body if s in gone]
        said = [s for s in own if isinstance(s, ast.Assign) and _turns_off(s)]
        if not any(ast.unparse(t) in given for s in said for t in s.targets) and not _entry_else(own, branch):
            continue
        up = facts.scopes.parents.get(branch)
        chained = isinstance(up, ast.If) and up.orelse == [branch]
        if own == branch.body and not chained and asks_alone(facts, branch.test):
            taken.update(own)
            says = f"`if {facts.short(branch.test)}:` and its DistributedSampler removed: {WHY}"
            yield Change(branch, codemod.edit(facts, branch, says), first_gone, (branch.test, *branch.body))
            continue
        for off in said:
            taken.add(off)
            if shuffle is not None:
                says = f"`{facts.short(off)}`: shuffle={shuffle} restored: {WHY}"
                yield Change(off.value, codemod.edit(facts, off, says), source(shuffle), (off.value,))
    for s in gone:
        if s not in taken:
            yield _without_choice(codemod, facts, s)


def _without_choice(codemod: Codemod, facts: Facts, s: ast.stmt) -> Change:
    """`sampler = DistributedSampler(d) if options.pop("dist") else None`, whose condition may do more than ask."""
    choice = s.value if isinstance(s, (ast.Assign, ast.AnnAssign)) else None
    if isinstance(choice, ast.IfExp) and does_more(facts, choice.test):
        says = f"`{facts.short(s)}` became `{facts.short(choice.test)}`, which does more than ask: {WHY}"
        return Change(s, codemod.edit(facts, s, says), _test_alone, (s,), reads=tuple(walk(choice.test)))
    return Change(s, codemod.edit(facts, s, f"`{facts.short(s)}` removed: {WHY}"), None, (s,))


def _test_alone(original: Any, updated: Any) -> Any:
    import libcst as cst

    return cst.Expr(updated.value.test, semicolon=updated.semicolon)


def _entry_else(own: list[ast.stmt], branch: ast.If) -> bool:
    """`options["sampler"] = ...` in one branch, `options["shuffle"] = True` in the other."""
    held = [s.targets[0].value for s in own if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Subscript)]
    return any(_is_entry(s, h, "shuffle") for s in branch.orelse for h in held)


def _turns_off(s: ast.Assign) -> bool:
    return isinstance(s.value, ast.Constant) and s.value.value is False


def _is_entry(s: ast.stmt, holder: ast.expr, key: str) -> bool:
    t = s.targets[0] if isinstance(s, ast.Assign) else None
    named = isinstance(t, ast.Subscript) and isinstance(t.slice, ast.Constant) and t.slice.value == key
    return named and ast.unparse(t.value) == ast.unparse(holder)  # type: ignore[union-attr]


def _branch_of(facts: Facts, s: ast.stmt) -> ast.If | None:
    up = facts.scopes.parents.get(s)
    return up if isinstance(up, ast.If) and s in up.body else None

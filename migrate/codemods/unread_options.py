"""Options about devices that nothing reads any more: `args.cuda = ...` goes, and the parser's line with it.

Where the parsed options are handed to another file, or looked at as a whole, all of them stay.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

from ..facts.arguments import argument_at
from ..facts.choice import accelerator
from ..facts.device_words import is_index
from ..facts.nodes import walk
from ..facts.options import option_name
from ..facts.script import Facts
from ..report import Note
from ._without_target import without_target
from .base import Change

if TYPE_CHECKING:
    from .remove_unused_devices import RemoveUnusedDevices

ABOUT = re.compile(r"cuda|gpu|device", re.IGNORECASE)


def unread_options(codemod: RemoveUnusedDevices, facts: Facts, gone: set[ast.AST]) -> Iterator[Change]:
    """Assignments and `add_argument` lines of options whose every read is gone."""
    lost = {a.attr for a in _lost(facts, gone)}
    if not lost:
        return
    lost -= read_by_trainer(facts) | facts.read_elsewhere
    loads = [a for a in facts.walk(ast.Attribute) if isinstance(a.ctx, ast.Load) and a not in gone]
    left = {a.attr for a in loads if facts.names.resolve(a) is None}
    declared = {n for call in facts.walk(ast.Call) if option_name(call) for n in walk(call)}
    said = {k.value for k in facts.walk(ast.Constant) if isinstance(k.value, str) and k not in declared}
    unread = lost - left - said  # getattr(args, "gpu") reads it too
    if not unread or facts.is_library:
        return
    for s in facts.walk(ast.Assign):
        t = s.targets[0]
        if s in gone or len(s.targets) > 1 or not isinstance(t, ast.Attribute) or t.attr not in unread:
            continue
        if _is_option(facts, t) and codemod._only_chooses(facts, s.value):
            yield without_target(codemod, facts, s, gone)
    stored = {a.attr for a in facts.walk(ast.Attribute) if a not in gone and not isinstance(a.ctx, ast.Load)}
    if seen_whole(facts):
        return
    for holder in facts.walk(ast.Expr):
        name = option_name(holder.value)
        if name in unread - stored and holder not in gone:
            why = f"nothing reads args.{name} any more, devices are the runtime's"
            says = f"`{facts.short(holder)}` removed: {why}{_without(holder.value)}"
            yield Change(holder, codemod.edit(facts, holder, says), None, (holder,))


def options_still_read(codemod: RemoveUnusedDevices, facts: Facts, gone: set[ast.AST]) -> Iterator[Note]:
    """Options about devices that lost a reader, and whose line stays: in the parser, or where they are given."""
    about = {a.attr: a for a in _lost(facts, gone) if ABOUT.search(a.attr) or facts.devices.is_device(a) or is_index(a)}
    if not about or facts.is_library:
        return
    asked = read_by_trainer(facts)
    declared = ((option_name(h.value), h) for h in facts.walk(ast.Expr))
    given = ((t.attr, s) for s in facts.walk(ast.Assign) for t in s.targets if _is_option_given(t, facts))
    for name, holder in (*declared, *given):
        if name is None or name not in about or name in asked or holder in gone:
            continue
        named = about[name].value.id  # type: ignore[attr-defined]
        line, column, _, _ = facts.text.key(holder)
        why = _why(facts, name, holder, gone)
        if why is not None:
            yield Note(line, column + 1, codemod.code, f"`{named}.{name}` stays: {why}")
            asked.add(name)  # once told


def _why(facts: Facts, name: str, holder: ast.stmt, gone: set[ast.AST]) -> str | None:
    """Who reads an option, or may."""
    loads = [a for a in facts.attributes.get(name, ()) if isinstance(a.ctx, ast.Load) and a not in gone]
    if (reader := next((a for a in loads if facts.names.resolve(a) is None), None)) is not None:
        return f"line {reader.lineno} reads it"
    own = set(walk(holder))
    texts = [k for k in facts.walk(ast.Constant) if k.value == name and k not in own]
    if (text := next(iter(texts), None)) is not None:
        return f"line {text.lineno} names it in a text"
    if name in facts.read_elsewhere:
        return "other files read it"
    whole = seen_whole(facts)
    return f"all options are looked at in line {whole.lineno}" if whole is not None else None


def _lost(facts: Facts, gone: set[ast.AST]) -> list[ast.Attribute]:
    """The reads of options that go."""
    return [a for a in facts.walk(ast.Attribute) if a in gone and _is_option(facts, a) and isinstance(a.ctx, ast.Load)]


def _is_option(facts: Facts, a: ast.Attribute) -> bool:
    return isinstance(a.value, ast.Name) and facts.devices.options.has(a.value.id) and a.value.id != "self"


def _is_option_given(t: ast.expr, facts: Facts) -> TypeGuard[ast.Attribute]:
    """`args.device = ...`"""
    return isinstance(t, ast.Attribute) and _is_option(facts, t)


def read_by_trainer(facts: Facts) -> set[str]:
    """What the Trainer's `accelerator=` is going to read."""
    chosen = accelerator(facts)
    tree = ast.parse(chosen, mode="eval") if chosen else ast.Module([], [])
    return {n.attr for n in walk(tree, ast.Attribute)}


def seen_whole(facts: Facts) -> ast.Name | None:
    """Where the options are printed, saved or handed on as one thing, so that a missing one is seen."""
    for s in facts.walk(ast.Assign):
        if not (isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Attribute)):
            continue
        if s.value.func.attr not in ("parse_args", "parse_known_args"):
            continue
        for name in [n for t in s.targets for n in walk(t, ast.Name)]:
            scope = facts.scopes.scope_of(name).lookup(name.id)
            reads = facts.scopes.reads(name.id, scope) if scope is not None else ()
            if (whole := next((r for r in reads if not _is_looked_into(facts, r)), None)) is not None:
                return whole
    return None


def _is_looked_into(facts: Facts, read: ast.Name) -> bool:
    """`args.x`, or args given to a function of this file."""
    up = facts.scopes.parents.get(read)
    together = isinstance(up, (ast.Tuple, ast.List))  # `args=(ngpus, args)`
    up = facts.scopes.parents.get(up) if isinstance(up, (ast.Tuple, ast.List)) else up
    up = facts.scopes.parents.get(up) if isinstance(up, ast.keyword) else up
    if together:
        started = argument_at(up, "fn", 0) if isinstance(up, ast.Call) and _spawned(up) else None
        if started is None:
            return False
        return _is_local(facts, started) or getattr(started, "id", "") in facts.defined_elsewhere
    if isinstance(up, ast.Attribute):
        return not up.attr.startswith("__")
    if isinstance(up, ast.Call) and isinstance(up.func, ast.Name) and up.func is not read:
        return _is_local(facts, up.func)
    if not isinstance(up, ast.Call) or up.func is read:
        return False
    last = up.func.attr if isinstance(up.func, ast.Attribute) else getattr(up.func, "id", "")
    return last in facts.defined_elsewhere or _spawned(up)


def _is_local(facts: Facts, called: ast.expr) -> bool:
    """A function or a class of this file, by its name."""
    scope = facts.scopes.scope_of(called).lookup(called.id) if isinstance(called, ast.Name) else None
    made = scope.stores.get(called.id, []) if scope is not None else []  # type: ignore[attr-defined]
    return bool(made) and all(isinstance(m, (ast.FunctionDef, ast.ClassDef)) for m in made)


def _spawned(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "spawn"


def _without(added: ast.expr) -> str:
    """What a command line can no longer say: `; give no --device, -d`; a place in it has no such name."""
    given = added.args if isinstance(added, ast.Call) else []
    flags = [a.value for a in given if isinstance(a, ast.Constant) and str(a.value).startswith("-")]
    return f"; a command line that gives {' or '.join(map(str, flags))} ends in an error now" if flags else ""

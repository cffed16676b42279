"""Saves that are each process's own: into memory, or into a file whose name no other process can have."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .arguments import argument, argument_at
from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts

MEMORY = ("io.BytesIO", "io.StringIO")
OWN = ("uuid.", "tempfile.", "os.getpid")
CLOCKS = {
    *(f"time.{n}" for n in "time time_ns strftime localtime gmtime ctime asctime".split()),
    *(f"datetime.datetime.{n}" for n in "now utcnow today".split()),
    "datetime.date.today",
}
LOADS = {"torch.load", "numpy.load", "open", "io.open"}
# ranks may come to what stands below as often as each likes
REPEATS = ast.For | ast.While | ast.Lambda | ast.ExceptHandler
SHARED = ("tempfile.gettempdir", "tempfile.gettempprefix")  # one folder for all processes


def saves_its_own(facts: Facts, call: ast.Call) -> bool:
    """Whether `torch.save(x, to)` is no file that the ranks would write one over the other."""
    to = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "f"), None)
    return to is not None and is_own(facts, to)


def is_own(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """Whether the value, or a part of it, comes from what gives every process another."""
    for n in walk(node):
        full = (facts.names.resolve(n.func) or "") if isinstance(n, ast.Call) else ""
        if full in MEMORY or (full.startswith(OWN) and not full.startswith(SHARED)):
            return True
        made = _made(facts, n) if depth < 4 else None
        if made and all(is_own(facts, v, depth + 1) for v in made):
            return True
    return False


def clocks_in_loaded_paths(facts: Facts) -> Iterator[ast.Call]:
    """The clocks whose times name a file that a script loads: each rank would look for one of its own."""
    found: dict[ast.Call, None] = {}
    for call in facts.walk(ast.Call):
        full = facts.names.resolve(call.func) or (call.func.id if isinstance(call.func, ast.Name) else "")
        if full in LOADS and call.args and not _writes(call):
            found.update(dict.fromkeys(_clocks(facts, call.args[0])))
    for clock in found:
        once = not any(isinstance(up, REPEATS) for up in facts.scopes.ancestors(clock))
        if once and facts.alone.reached_by(clock) == {False}:
            yield clock


def _writes(call: ast.Call) -> bool:
    mode = argument_at(call, "mode", 1)
    return isinstance(mode, ast.Constant) and isinstance(mode.value, str) and any(m in mode.value for m in "wax")


def _clocks(facts: Facts, node: ast.expr, depth: int = 0) -> Iterator[ast.Call]:
    for n in walk(node):
        if isinstance(n, ast.Call) and facts.names.resolve(n.func) in CLOCKS:
            yield n
        for made in _made(facts, n) or [] if depth < 6 else []:
            yield from _clocks(facts, made, depth + 1)


def _made(facts: Facts, n: ast.AST) -> list[ast.expr] | None:
    """What a name is given, or an attribute by the constructor and its calls."""
    if isinstance(n, ast.Name):
        scope = facts.scopes.scope_of(n).lookup(n.id)
        return facts.devices.assigned(n.id, scope) if scope is not None else None
    if not (isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"):
        return None
    made: list[ast.expr] = []
    for store in facts.attributes[n.attr]:
        if not isinstance(store.ctx, ast.Load):
            s, c = facts.scopes.parents.get(store), _class_around(facts, store)
            if not isinstance(s, ast.Assign) or c is not _class_around(facts, n):
                return None
            made += _given(facts, s.value, c) or [s.value]
    return made


def _class_around(facts: Facts, node: ast.AST) -> ast.ClassDef | None:
    return next((up for up in facts.scopes.ancestors(node) if isinstance(up, ast.ClassDef)), None)


def _given(facts: Facts, value: ast.expr, c: ast.ClassDef | None) -> list[ast.expr]:
    """What the calls of a class give a parameter of its constructor."""
    f = facts.classes.methods(c).get("__init__") if c is not None else None
    if (
        c is None
        or not isinstance(f, ast.FunctionDef)
        or not isinstance(value, ast.Name)
        or value.id not in facts.scopes.by_node[f].params
    ):
        return []
    calls = [x for x in facts.walk(ast.Call) if isinstance(x.func, ast.Name) and x.func.id == c.name]
    return [v for call in calls if (v := argument(call, f, value.id, True)) is not None]

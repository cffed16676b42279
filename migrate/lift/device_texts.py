"""Devices that a script has as texts, `device = "cuda"`, and reads as what they are: by name, or in what it calls."""

from __future__ import annotations

import ast

from ..facts.arguments import argument
from ..facts.autocast import AUTOCAST
from ..facts.nodes import walk
from ..facts.other_files import found_there
from ..facts.scalers import SCALER
from ..facts.scopes import Scope
from ..facts.script import Facts

SHOWS = {"print", "str", "format", "len"}
OF_TEXTS = {
    "startswith",
    "endswith",
    "split",
    "rsplit",
    "partition",
    "rpartition",
    "lower",
    "upper",
    "strip",
    "replace",
}


def as_text(facts: Facts, read: ast.Name, depth: int = 0) -> bool:
    """Whether a device is read as the text that it is: `device == "cpu"`, `autocast(device)`, f"{device}"; or in a
    function of the project that gets it.
    """
    up = facts.scopes.parents.get(read)
    up = facts.scopes.parents.get(up) if isinstance(up, ast.keyword) else up
    if isinstance(up, ast.Call):
        full = facts.names.resolve(up.func)
        if full in AUTOCAST | SCALER or (isinstance(up.func, ast.Name) and up.func.id in SHOWS):
            return True
        return depth < 4 and any(as_text(home, r, depth + 1) for home, r in _handed(facts, up, read))
    return isinstance(up, (ast.Compare, ast.Attribute, ast.BinOp, ast.FormattedValue, ast.Subscript))


def is_text(facts: Facts, name: str, scope: Scope) -> bool:
    """Whether a device is asked what only a text has, `device.startswith("cuda")`, or a function that gets it does."""
    return any(asks_text(facts, read) for read in facts.scopes.reads(name, scope))


def asks_text(facts: Facts, read: ast.Name, depth: int = 0) -> bool:
    up = facts.scopes.parents.get(read)
    if isinstance(up, ast.Attribute):
        return up.attr in OF_TEXTS
    up = facts.scopes.parents.get(up) if isinstance(up, ast.keyword) else up
    if not isinstance(up, ast.Call):
        return False
    return depth < 4 and any(asks_text(home, r, depth + 1) for home, r in _handed(facts, up, read))


def _handed(facts: Facts, call: ast.Call, read: ast.Name) -> list[tuple[Facts, ast.Name]]:
    """Where a function of the project reads the parameter that a call gives it by this name."""
    f: ast.AST | None = facts.devices.function_of(call)
    home = facts
    if f is None and facts.others and (found := found_there(facts, call.func)) is not None:
        _, home, f = found
    if not isinstance(f, ast.FunctionDef):
        return []
    own = home.scopes.by_node[f]
    names = [n for n in own.params if argument(call, f, n) is read and n not in own.stores]
    return [(home, r) for n in names for r in walk(f, ast.Name) if r.id == n and isinstance(r.ctx, ast.Load)]

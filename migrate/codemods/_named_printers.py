"""`log = print`, `partial(print, flush=True)`, `map(print, lines)`: Python's own print that goes by another name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.script import Facts

SHOWN = ("sys.stdout", "sys.stderr")


def printers(facts: Facts) -> Iterator[ast.Name]:
    """Where Python's own `print` is read and not called there."""
    if "print" not in facts.text.text:
        return
    for name in facts.walk(ast.Name):
        if name.id != "print" or not isinstance(name.ctx, ast.Load):
            continue
        up = facts.scopes.parents.get(name)
        called = isinstance(up, ast.Call) and (up.func is name or not shows(up))
        if called or isinstance(up, (ast.Attribute, ast.Compare)) or facts.in_formatted_string(name):
            continue
        if _is_builtin(facts, name):
            yield name


def shows(call: ast.Call) -> bool:
    """Whether what is printed is for the terminal: no `file=` of the script's own."""
    where = next((k.value for k in call.keywords if k.arg == "file"), None)
    return where is None or ast.unparse(where) in SHOWN


def _is_builtin(facts: Facts, name: ast.Name) -> bool:
    """No other is bound by that name, but for what the module makes of it: `print = partial(print, flush=True)`."""
    home = facts.scopes.scope_of(name).lookup("print")
    if home is None:
        return True
    stores = [facts.scopes.parents.get(s) for s in home.stores.get("print", ())]
    within = facts.scopes.statement_of(name)
    return home is facts.scopes.module and stores == [within] and isinstance(within, ast.Assign)

"""Files that are opened in the statement that writes them: `pickle.dump(x, open(path, "wb"))`, `open(p, "w").write(x)`.

Such a file is whole when its statement is over, so that ranks may wait for it there; it is then opened in a `with`.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from ..facts.arguments import argument_at, given_to
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.written_files import is_builtin_open, written_by

READS = re.compile(r"load|read|open|from_|exists|getsize|listdir")  # what may find another file once this one is opened
NAMES = ("f", "file", "opened", "written")


def statement_of(facts: Facts, opened: ast.Call) -> ast.Expr | None:
    """The statement that opens a file for its one call, and that can as well stand below the opening."""
    up = facts.scopes.parents.get(opened)
    up = facts.scopes.parents.get(up) if isinstance(up, (ast.keyword, ast.Attribute)) else up
    s = facts.scopes.parents.get(up) if isinstance(up, ast.Call) else None
    if not isinstance(up, ast.Call) or not isinstance(s, ast.Expr) or up.func is opened:
        return None
    before = [] if _of_method(up, opened) else [n for a in given_to(up) if a is not opened for n in walk(a)]
    calls = [n for n in before if isinstance(n, (ast.Call, ast.Await, ast.NamedExpr))]
    if any(not isinstance(n, ast.Call) or READS.search(ast.unparse(n.func)) for n in calls):
        return None
    alone = not facts.text.margin(s).strip() and all(o is s or o.lineno != s.lineno for o in facts.scopes.block_of(s))
    return s if alone and free_name(facts, s) is not None else None


def _of_method(call: ast.Call, opened: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.value is opened


def free_name(facts: Facts, s: ast.stmt) -> str | None:
    """A name for the file that its function, or the script, has no other use for."""
    scope = facts.scopes.scope_of(s)
    taken = {n.id for n in walk(scope.node, ast.Name)} | set(scope.params)
    return next((n for n in NAMES if n not in taken), None)


def opened_for(facts: Facts, save: ast.Call) -> ast.Call | None:
    """The `open(path, "wb")` that `torch.save(x, open(path, "wb"))` is given, which it does without."""
    to = argument_at(save, "f", 1)
    if not isinstance(to, ast.Call) or not is_builtin_open(facts, to.func) or len(to.args) != 2 or to.keywords:
        return None
    return to if written_by(facts, to) is not None else None


def to_path(saves: str) -> Any:
    """`torch.save(x, open(path, "wb"))` to `saves(x, path)`."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        args = list(updated.args)
        at = next((i for i, a in enumerate(args) if a.keyword is not None and a.keyword.value == "f"), 1)
        if isinstance(args[at].value, cst.Call):
            args[at] = args[at].with_changes(value=args[at].value.args[0].value)
        return updated.with_changes(func=cst.parse_expression(saves), args=args)

    return rewrite


def within(opens: str, name: str, place: int | None, unit: str) -> Any:
    """`dump(x, open(path))` to `with opens(path) as f: dump(x, f)`; the file is at a place, or what is called of it."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        from ._pass import Under

        call = updated.value
        if place is None:
            opened, new = call.func.value, call.with_changes(func=call.func.with_changes(value=cst.Name(name)))
        else:
            args = list(call.args)
            opened, args[place] = args[place].value, args[place].with_changes(value=cst.Name(name))
            new = call.with_changes(args=args)
        opened = opened.with_changes(func=cst.parse_expression(opens))
        return Under(opened, updated.with_changes(value=new), unit, name)

    return rewrite


def place_of(s: ast.Expr, opened: ast.Call) -> int | None:
    """Where the call of a statement is given the file; None where it is a method of it."""
    assert isinstance(s.value, ast.Call)
    return None if _of_method(s.value, opened) else given_to(s.value).index(opened)

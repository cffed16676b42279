"""Imports that a result needs, in one line after the imports that are there."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.text import Text

RUNTIME = "ptmigrate.runtime"


def imported_as(facts: Facts, name: str) -> str:
    """What the result calls a name of the runtime: itself, unless the script has such a name already."""
    taken = {n for s in facts.scopes.by_node.values() for n in (*s.stores, *s.params)}
    new = name
    while new in taken:
        new = f"Runtime{new}"
    return new


def as_import(name: str, own: str) -> str:
    return name if name == own else f"{name} as {own}"


def add_imports(text: str, package: str, names: list[str], after: str = "") -> str:
    """The text with `from package import names` after its last import at the top, and a statement right below."""
    at, _, new = import_edit(ast.parse(text), Text(text), package, names, after)
    return text[:at] + new + text[at:]


def import_line(package: str, names: list[str]) -> str:
    return f"from {package} import {', '.join(sorted(names, key=lambda n: (n.islower(), n)))}"


def import_edit(tree: ast.Module, at: Text, package: str, names: list[str], after: str = "") -> tuple[int, int, str]:
    """The edit of a text that adds the import."""
    last: ast.stmt | None = None
    needed = {n.split()[-1] for n in names} | {after.partition(" ")[0]}
    for i, s in enumerate(tree.body):
        if isinstance(s, ast.Import | ast.ImportFrom) or (i == 0 and isinstance(s, ast.Expr)):
            last = s
        elif not isinstance(s, ast.If | ast.Try | ast.Expr | ast.Assign) or _reads(s, needed):
            break
    newline = at.newline
    line = import_line(package, names)
    if after:
        line += newline * 2 + after
    if last is None:
        first = tree.body[0] if tree.body else None
        top = getattr(first, "lineno", 1)
        at_line = min([top, *(d.lineno for d in getattr(first, "decorator_list", ()))])
        start = at.line_span(at_line, at_line)[0]
        return start, start, line + newline
    _, stop = at.line_span(last.end_lineno or 1, last.end_lineno or 1)
    ended = at.text[:stop].endswith(("\n", "\r"))
    return stop, stop, ("" if ended else newline) + line + newline


def _reads(s: ast.stmt, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in walk(s))

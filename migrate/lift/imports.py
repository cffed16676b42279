"""Imports that a result needs, in one line after the imports that are there."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.text import Text


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
        if isinstance(s, (ast.Import, ast.ImportFrom)) or (i == 0 and isinstance(s, ast.Expr)):
            last = s
        elif not isinstance(s, (ast.If, ast.Try, ast.Expr, ast.Assign)) or _reads(s, needed):
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


def before_its_uses(text: str, package: str) -> str:
    """The text with its import of the package above the first statement at the top that reads one of the names.

    A script that prints something between its imports prints it with the runtime's function.
    """
    above, _, imported = text.partition(f"from {package} import ")
    if not any(n.strip().rpartition(" ")[2] in above for n in imported.partition("\n")[0].split(",")):
        return text  # without a second look: nothing above has the names
    tree, at = ast.parse(text), Text(text)
    there = next((s for s in tree.body if isinstance(s, ast.ImportFrom) and s.module == package), None)
    if there is None:
        return text
    names = {a.asname or a.name for a in there.names}
    reading = next((s for s in tree.body[: tree.body.index(there)] if _reads(s, names)), None)
    if reading is None:
        return text
    start, stop = at.line_span(there.lineno, there.end_lineno or 0)
    first = min([reading.lineno, *(d.lineno for d in getattr(reading, "decorator_list", ()))])
    top = at.line_span(first, first)[0]
    return text[:top] + text[start:stop] + text[top:start] + text[stop:]


def _reads(s: ast.stmt, names: set[str]) -> bool:
    return any(n.id in names for n in walk(s, ast.Name))

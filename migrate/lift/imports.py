"""Imports that a result needs, in one line after the imports that are there."""

from __future__ import annotations

import ast

from ..facts.script import Facts
from ..facts.text import Text


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
    if not names:
        return text
    tree, at = ast.parse(text), Text(text)
    last: ast.stmt | None = None
    for i, s in enumerate(tree.body):
        if isinstance(s, ast.Import | ast.ImportFrom) or (i == 0 and isinstance(s, ast.Expr)):
            last = s
        elif not isinstance(s, ast.If | ast.Try | ast.Expr):
            break
    newline = at.newline
    line = f"from {package} import {', '.join(sorted(names, key=lambda n: (n.islower(), n)))}"
    if after:
        line += newline * 2 + after
    if last is None:
        first = at.line_span(1, 1)[0]
        return text[:first] + line + newline + text[first:]
    _, stop = at.line_span(last.end_lineno or 1, last.end_lineno or 1)
    ended = text[:stop].endswith(("\n", "\r"))
    return text[:stop] + ("" if ended else newline) + line + newline + text[stop:]

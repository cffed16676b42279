"""New definitions and imports at the top of the module, as text before one of its lines."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from ..facts.script import Facts
from ..facts.text import lines_of
from .base import Insertion


def added_lines(facts: Facts, insertions: Sequence[Insertion]) -> list[tuple[int, int, str]]:
    """(offset, the same offset, text) for every line before which something comes, in the order of the text."""
    newline = facts.text.newline
    found: list[tuple[int, str]] = []
    imports = sorted({name for i in insertions for name in i.imports})
    if imports:
        first = _starts(facts, next((s for s in facts.tree.body if _is_import(s)), _first(facts)))
        found.append((facts.text.line_span(first, first)[0], "".join(name + newline for name in imports)))
    before: dict[int, list[str]] = {}
    for i in [i for i in insertions if i.text]:
        at = next(n for n, s in enumerate(facts.tree.body) if (s.end_lineno or 0) >= i.line)
        before.setdefault(at, []).append(newline.join(lines_of(i.text)) + newline)
    for at, definitions in before.items():
        found.append(_defined(facts, at, definitions))
    return [(at, at, new) for at, new in sorted(found)]


def with_added(text: str, start: int, stop: int, edits: Iterable[tuple[int, int, str]]) -> str:
    """A piece of the text with the edits (start, stop, new) that begin in it."""
    out = []
    for at, end, new in sorted(edits):
        if start <= at < stop:
            out += [text[start:at], new]
            start = end
    return "".join([*out, text[start:stop]])


def _defined(facts: Facts, at: int, definitions: list[str]) -> tuple[int, str]:
    """Definitions above a statement and the comments over it, with as many blank lines between as stand there."""
    statement, text, newline = facts.tree.body[at], facts.text, facts.text.newline
    first = _starts(facts, statement)
    top = (facts.tree.body[at - 1].end_lineno or 0) + 1 if at else first
    lines = [text.text[slice(*text.line_span(n, n))] for n in range(top, first)]
    own = next((n for n in range(len(lines), 0, -1) if _is_of_block(lines[n - 1])), 0)
    lead = lines[own:]
    blank = min(sum(not line.strip() for line in lead), 2) or 2
    new = "".join(newline * blank + definition for definition in definitions)
    return text.line_span(top + own, top + own)[0], new if lead else new + newline * 2


def _is_of_block(line: str) -> bool:
    """A comment that is moved in belongs to the block above it."""
    return line[:1] in (" ", "\t") and line.lstrip().startswith("#")


def _starts(facts: Facts, s: ast.stmt) -> int:
    return facts.text.line_of(facts.text.span(s)[0])


def _is_import(s: ast.stmt) -> bool:
    """An import that others may stand before: not `from __future__`."""
    return isinstance(s, ast.Import) or (isinstance(s, ast.ImportFrom) and s.module != "__future__")


def _first(facts: Facts) -> ast.stmt:
    """The first statement that an import may stand before: not the docstring of the module."""
    body = facts.tree.body
    kept = [n for n, s in enumerate(body) if isinstance(s, ast.ImportFrom)]  # from __future__
    first = kept[-1] + 1 if kept else int(ast.get_docstring(facts.tree, clean=False) is not None)
    return body[min(first, len(body) - 1)]

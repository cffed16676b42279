"""Imports that were read and are not any more, once the edits are made, leave with them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from .facts.other_files import OtherFile
from .facts.script import Facts, once_a_file
from .facts.text import Text
from .report import Edit

CODE = "PTM690"
WORD = re.compile(r"\w+")
TYPES = re.compile(r"[\w.\[\], |\"']+")  # what a text of types or of `__all__` looks like
PROSE = re.compile(r"\w +\w")
# packages that give torch a device as they are imported
PLUGINS = {"torch_npu", "torch_xla", "torch_mlu", "torch_musa", "torch_directml", "habana_frameworks"}
PLUGINS |= {"intel_extension_for_pytorch", "oneccl_bindings_for_pytorch"}
REGISTERS_NOT = ("torch.", "functools.", "contextlib.", "dataclasses.", "typing.", "numba.")  # decorators that wrap


def without_unread_imports(
    before: Facts, after: Facts, taken: Callable[[str], bool] | None = None
) -> tuple[str, list[Edit]]:
    """The text after the edits without the imports that only they read, and what was taken out.

    `taken`: whether other files may take a name from this one, `from model import *` whatever it imports.
    """
    text = after.text.text
    gone = _no_longer_read(before, after) if text != before.text.text else set()
    if not gone:
        return text, []
    places, read = {name: s for s in before.tree.body for name in _bound(s)}, _read(before)
    cuts: list[tuple[int, int]] = []
    edits = []
    for s in after.tree.body:
        unread = [a for a in _aliases(s) if _name(a) in gone]
        if not unread or _name(unread[0]) == "torch" or _does_more(before, s):
            continue
        unread = [a for a in unread if taken is None or not taken(_name(a))]
        found = list(cuts_of(after.text, s, unread)) if unread else []
        if not found:
            continue
        cuts += found
        for a in unread:
            at = places.get(_name(a))
            if at is None and _name(a) not in read:
                continue  # one of the migration's own, on its way
            line, column = (at.lineno, at.col_offset + 1) if at is not None else (1, 1)
            edits.append(Edit(line, column, CODE, f"import of `{_name(a)}` removed: nothing reads it any more"))
    for start, stop in sorted(cuts, reverse=True):
        text = text[:start] + text[stop:]
    return text, edits


def _no_longer_read(before: Facts, after: Facts) -> set[str]:
    """What the original read and the result does not; modules that the migration imported on its way, too."""
    read = _read(after)
    own = {name for s in after.tree.body if isinstance(s, ast.Import) for name in _bound(s)} - read
    known = (
        {name for s in (*before.walk(ast.Import), *before.walk(ast.ImportFrom)) for name in _bound(s)} if own else set()
    )
    return (_read(before) - read) | (own - known)


@once_a_file
def _read(facts: Facts) -> set[str]:
    """The names that are read, texts of annotations and `__all__` among them."""
    found = {n.id for n in facts.walk(ast.Name)}
    values = (n.value for n in facts.walk(ast.Constant))
    exports = "__all__" in facts.text.text
    for text in {v for v in values if isinstance(v, str) and len(v) < 200}:
        if TYPES.fullmatch(text) and (exports or not PROSE.search(text)):
            found.update(WORD.findall(text))
    return found


def _does_more(facts: Facts, s: ast.stmt) -> bool:
    """Whether an import does more than to give a name: a plugin, a module of the project that runs something."""
    names = [a.name for a in _aliases(s)] if isinstance(s, ast.Import) else [getattr(s, "module", None) or ""]
    if any(n.partition(".")[0] in PLUGINS for n in names):
        return True
    modules = {n.rpartition(".")[2] for n in names}
    modules |= {a.name for a in _aliases(s)} if isinstance(s, ast.ImportFrom) else set()
    return any(_runs(o) for o in facts.others if o.stem in modules)


def _runs(other: OtherFile) -> bool:
    """Whether a file does something as it is imported: a call, a loop, a class that a decorator takes down."""
    there = other.facts()
    return there is None or any(
        (isinstance(s, ast.Expr) and not isinstance(s.value, ast.Constant))
        or isinstance(s, (ast.For, ast.While, ast.With))
        or any(not _full(there, d).startswith(REGISTERS_NOT) for d in getattr(s, "decorator_list", ()))
        for s in there.tree.body
    )


def _full(facts: Facts, decorator: ast.expr) -> str:
    return facts.names.resolve(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""


def _aliases(s: ast.stmt) -> list[ast.alias]:
    if isinstance(s, ast.ImportFrom) and s.module == "__future__":
        return []
    return s.names if isinstance(s, (ast.Import, ast.ImportFrom)) else []


def _bound(s: ast.stmt) -> Iterator[str]:
    yield from (_name(a) for a in _aliases(s))


def _name(a: ast.alias) -> str:
    return a.asname or a.name.partition(".")[0]


def cuts_of(text: Text, s: ast.stmt, unread: list[ast.alias]) -> Iterator[tuple[int, int]]:
    """The spans to take out: the whole line of a statement, or single names with their commas."""
    start, stop = text.span(s)
    first, last = text.line_span(s.lineno, s.end_lineno or s.lineno)
    aliases = _aliases(s)
    if len(unread) == len(aliases):
        rest = text.text[stop:last].strip()
        if text.text[first:start].strip() or (rest and not rest.startswith("#")):
            return  # another statement on the line
        yield first, last
        return
    spans = [text.span(a) for a in aliases]
    last_kept = max(i for i, a in enumerate(aliases) if a not in unread)
    yield from ((spans[i][0], spans[i + 1][0]) for i, a in enumerate(aliases[:last_kept]) if a in unread)
    if last_kept + 1 < len(aliases):
        yield spans[last_kept][1], spans[-1][1]

"""The tree of a text from that of a text like it: what both have on the same lines is not parsed again.

A file has some seven texts on its way, and parsing them took a sixth of the time of its migration.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Sequence

from .annotated import as_assignments
from .text import Text

# the margin of the next line of code, and what belongs to a statement above it
BELOW = re.compile(r"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n?|\n))*([ \t]*)(?:(else|elif|except|finally)\b|\S)")
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def groups(statements: Sequence[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Statements one by one, or together those that semicolons keep on the same lines."""
    group: list[ast.stmt] = []
    for s in statements:
        if group and s.lineno > (group[-1].end_lineno or 0):
            yield group
            group = []
        group.append(s)
    if group:
        yield group


def tree_near(text: Text, before: Text, tree: ast.Module) -> ast.Module:
    """The tree of `text`; what stands there as it stood `before` are the very nodes of `tree`.

    Raises SyntaxError where the text does not parse.
    """
    near = _Near(text, before)
    try:
        if near.is_as_long:
            return as_assignments(ast.Module(near.block(tree.body, 0, len(text.starts)), []))
        return as_assignments(ast.Module(near.beginning(tree.body), []))
    except SyntaxError:
        return as_assignments(ast.parse(text.text))  # a statement goes on below the lines that it had: with an `else`


class _Near:
    """A text beside one that is like it. A line stands for the place at its end: what is after 0 begins the text."""

    def __init__(self, text: Text, before: Text) -> None:
        self.text, self.before = text, before
        self.is_as_long = len(text.starts) == len(before.starts)

    def block(self, old: Sequence[ast.stmt], first: int, last: int) -> list[ast.stmt]:
        """What stands after line `first`, to `last`, where as many lines had the statements of a block."""
        body: list[ast.stmt] = []
        margin = old[0].col_offset if old else 0
        end = done = first
        for group in groups(old):
            start, end = end, group[-1].end_lineno or 0
            now = group if self.are_alike(start, end) else self.redefined(group, start)
            if now:
                body += [*self.parsed(done, start, margin), *now]
                done = end
        return [*body, *self.parsed(done, last, margin)]

    def redefined(self, group: list[ast.stmt], first: int) -> list[ast.stmt]:
        """A definition of which the body changed; nothing where it is more than that."""
        definition, head = group[0], self.head(group, first)
        if head is None or not isinstance(definition, Definition):
            return []
        body, end = self.block(definition.body, head, definition.end_lineno or 0), definition.body[-1]
        if not body or (body[-1] is not end and ";" in self.line(body[-1].end_lineno or 0)):
            raise SyntaxError  # a semicolon counts to the end of a block, and to no statement
        return [_with_body(definition, body, definition if body[-1] is end else body[-1])]

    def beginning(self, old: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements of the text, where another began as it does."""
        kept, end = self.kept(old, 0)
        changed = next(groups(old[len(kept) :]), [])
        head = self.head(changed, end)
        if head is None or not isinstance(definition := changed[0], Definition):
            return [*kept, *self.parsed(end, len(self.text.starts), 0)]
        inner, end = self.kept(definition.body, head)
        holder, rest = self.held(end, len(self.text.starts), definition.body[0].col_offset)
        return [*kept, _with_body(definition, [*inner, *holder.body], holder), *rest]

    def kept(self, old: Sequence[ast.stmt], first: int) -> tuple[list[ast.stmt], int]:
        """The statements after a line as far as they are what they were, and the last line of them."""
        kept: list[ast.stmt] = []
        for group in groups(old):
            last = group[-1].end_lineno or 0
            if not self.are_alike(first, last) or self.goes_on(last, group[0].col_offset):
                break
            kept += group
            first = last
        return kept, first

    def goes_on(self, line: int, margin: int) -> bool:
        """Whether the statement that ended at a line is longer now."""
        below = BELOW.match(self.text.text, self.text.starts[line])
        return below is not None and (len(below[1]) > margin or below[2] is not None)

    def are_alike(self, first: int, last: int) -> bool:
        """Whether both texts have the same after line `first`, to the end of `last`."""
        if last >= min(len(self.text.starts), len(self.before.starts)):
            return False
        new, old = (t.text[t.starts[first] : t.starts[last]] for t in (self.text, self.before))
        return new == old

    def head(self, group: list[ast.stmt], first: int) -> int | None:
        """The line above the body of a definition whose head is what it was."""
        if len(group) != 1 or not isinstance(group[0], Definition):
            return None
        body = group[0].body[0]
        line = min([body.lineno, *(d.lineno for d in getattr(body, "decorator_list", ()))]) - 1
        return line if line >= group[0].lineno and self.are_alike(first, line) else None

    def line(self, number: int) -> str:
        return self.text.text[slice(*self.text.line_span(number, number))]

    def parsed(self, first: int, last: int, margin: int) -> list[ast.stmt]:
        """The statements after line `first`, to `last`."""
        if first >= last:
            return []
        if margin:
            holder, rest = self.held(first, last, margin)
            if rest:
                raise SyntaxError
            return holder.body
        return ast.parse("\n" * first + self.text.text[slice(*self.text.line_span(first + 1, last))]).body

    def held(self, first: int, last: int, margin: int) -> tuple[ast.ClassDef, list[ast.stmt]]:
        """The statements after line `first` that stand at a margin as the body of a class, and those that follow it."""
        text = self.text.text[slice(*self.text.line_span(first + 1, last))]
        holder, *rest = ast.parse("\n" * (first - 1) + "class _:\n" + text).body
        if not isinstance(holder, ast.ClassDef) or holder.body[0].col_offset != margin:
            raise SyntaxError
        return holder, rest


def _with_body(definition: Definition, body: list[ast.stmt], end: ast.stmt) -> ast.stmt:
    new = copy.copy(definition)
    new.body, new.end_lineno, new.end_col_offset = body, end.end_lineno, end.end_col_offset
    return new

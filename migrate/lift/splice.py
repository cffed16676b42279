"""Statements moved as text: their own comments move with them, names inside are replaced where they stand."""

from __future__ import annotations

import ast
import io
import re
import tokenize

from ..facts.text import Text, lines_of

SPANS_LINES = ('"""', "'''", "\\\n", "\\\r")  # what a string of several lines has

ONE_LINE = re.compile(r'^[ \t]*"""[^"\\\r\n]*"""[ \t]*$', re.MULTILINE)  # a docstring that has no more than its line


class Splice:
    """Cuts statements out of a text, with replacements of spans inside them."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def with_comments(self, s: ast.stmt, floor: int = 1) -> tuple[int, int]:
        """First and last line of a statement with the comments right above it; `floor` is the first line allowed."""
        start, _ = self.text.span(s)
        first = self.text.line_of(start)
        while first - 1 >= floor and self._line(first - 1).strip().startswith("#"):
            first -= 1
        return first, s.end_lineno or first

    def _line(self, n: int) -> str:
        a, b = self.text.line_span(n, n)
        return self.text.text[a:b]

    def shares_a_line(self, s: ast.stmt) -> bool:
        """Whether other code stands on the statement's first or last line (`a = 1; b = 2`, `if x: y()`)."""
        start, stop = self.text.span(s)
        first, _ = self.text.line_span(self.text.line_of(start), self.text.line_of(start))
        _, end = self.text.line_span(s.end_lineno or 1, s.end_lineno or 1)
        rest = self.text.text[stop:end].strip()
        return self.text.text[first:start].strip() != "" or (rest != "" and not rest.startswith("#"))

    def render(self, s: ast.stmt, replaced: dict[tuple[int, int], str], floor: int = 1) -> list[str]:
        """The statement's lines at no indentation, comments included, with spans of the text replaced."""
        start, stop = self.text.span(s)
        if self.shares_a_line(s):
            body = self._replaced(start, stop, replaced)
            return lines_of(body)
        first, last = self.with_comments(s, floor)
        a, b = self.text.line_span(first, last)
        margin = self.text.text[self.text.line_span(self.text.line_of(start), self.text.line_of(start))[0] : start]
        block = self._replaced(a, b, replaced)
        fixed = _fixed_in(block, bool(margin))
        return [
            line if i in fixed else (line[len(margin) :] if line.startswith(margin) else line.lstrip())
            for i, line in enumerate(lines_of(block.rstrip("\r\n")))
        ]

    def _replaced(self, a: int, b: int, replaced: dict[tuple[int, int], str]) -> str:
        out, at = [], a
        for (x, y), new in sorted(replaced.items()):
            if x < at or y > b:
                continue
            out += [self.text.text[at:x], new]
            at = y
        return "".join([*out, self.text.text[at:b]])


def _fixed_in(block: str, indented: bool) -> set[int]:
    """The 0-based lines of a block that begin inside a string token: their indentation belongs to the value."""
    fixed: set[int] = set()
    if not any(mark in block for mark in SPANS_LINES):
        return fixed
    rest = ONE_LINE.sub("", block)
    if not any(mark in rest for mark in SPANS_LINES):
        return fixed
    shift = 2 if indented else 1
    opened: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO("if 1:\n" + block if indented else block).readline):
            kind = tokenize.tok_name[token.type]
            if kind in ("FSTRING_START", "TSTRING_START"):
                opened.append(token.start[0])
            elif kind == "STRING" or kind in ("FSTRING_END", "TSTRING_END"):
                first = token.start[0] if kind == "STRING" else opened.pop()
                fixed.update(range(first + 1 - shift, token.end[0] + 1 - shift))
    except (tokenize.TokenError, IndentationError):
        pass
    return fixed


def indent(lines: list[str], by: str) -> list[str]:
    """Lines moved in; those inside strings are left."""
    inside = _fixed_in("\n".join(lines) + "\n", False)
    return [line if i in inside or not line.strip() else by + line for i, line in enumerate(lines)]

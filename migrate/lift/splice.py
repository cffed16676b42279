"""Statements moved as text: their own comments move with them, names inside are replaced where they stand."""

from __future__ import annotations

import ast
import io
import re
import tokenize

from ..facts.text import LINE_END, Text, lines_of

SPANS_LINES = ('"""', "'''", "\\\n", "\\\r")  # what a string of several lines has

OPENS = re.compile(r":[ \t]*(#[^'\"]*)?[\r\n]*$")  # the last line of a head: `def f(a,`, `b):  # why`

DOCSTRING = re.compile(r'^[ \t]*"""[^"\\]*"""[ \t\r]*$', re.MULTILINE)  # with nothing beside it


class Splice:
    """Cuts statements out of a text, with replacements of spans inside them."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def with_comments(self, s: ast.stmt, floor: int = 1) -> tuple[int, int]:
        """First and last line of a statement with its comments: those right above it, paragraphs of them in a block,
        where the first line allowed is `floor`, and those right below it where a blank line parts them from the next.
        """
        start, _ = self.text.span(s)
        line, last = self.text.line_of(start), s.end_lineno or self.text.line_of(start)
        if "#" not in self.text.text:
            return line, last
        above, below = line - 1, last + 1
        while above >= floor and self._is_empty(above):
            above -= 1
        while below <= len(self.text.starts) and self._is_empty(below):
            below += 1
        first = self._first_of_next(above, line, self._indentation(line), self._opens(above, line))
        if floor == 1:  # it may be the file's own, or a section's
            own = next((n for n in range(line - 1, first - 1, -1) if not self._is_comment(n)), first - 1)
            first = own + 1
        first = next((n for n in range(first, line) if self._is_comment(n)), line)
        follows = below <= len(self.text.starts) and self._indentation(below) == self._indentation(line)
        if follows and not isinstance(s, (ast.FunctionDef, ast.ClassDef)):
            last = self._first_of_next(last, below, self._indentation(line), False) - 1
        return first, last

    def floor(self, s: ast.stmt) -> int:
        """The first line between the code above a statement and it."""
        line = self.text.line_of(self.text.span(s)[0])
        while line > 1 and self._is_empty(line - 1):
            line -= 1
        return line

    def is_parted(self, s: ast.stmt) -> bool:
        """Whether an empty line stands between the code above a statement and it, with its comments."""
        floor = self.floor(s)
        first, _ = self.with_comments(s, floor)
        return first > floor and not self._line(first - 1).strip()

    def to_the_end(self, s: ast.stmt) -> int:
        """The last line of a statement with the comments that end its block, or its own blocks."""
        line = self.text.line_of(self.text.span(s)[0])
        last = n = s.end_lineno or line
        while n + 1 <= len(self.text.starts) and self._is_empty(n + 1):
            n += 1
            if self._is_comment(n):
                if self._indentation(n) < self._indentation(line):
                    break
                last = n
        ends = n + 1 > len(self.text.starts) or self._indentation(n + 1) < self._indentation(line)
        return last if ends and self._indentation(line) else s.end_lineno or line

    def with_inner_comments(self, s: ast.stmt) -> int:
        """The last line of a statement with the comments that end its blocks, which stand further in than itself."""
        line = self.text.line_of(self.text.span(s)[0])
        last = n = s.end_lineno or line
        while n + 1 <= len(self.text.starts) and self._is_empty(n + 1):
            n += 1
            if self._is_comment(n) and self._indentation(n) <= self._indentation(line):
                break
            last = n if self._is_comment(n) else last
        return last

    def ending(self, s: ast.stmt) -> list[str]:
        """The comments that end its blocks, further in than itself, at no indentation."""
        texts = (self._line(n).strip() for n in range((s.end_lineno or s.lineno) + 1, self.with_inner_comments(s) + 1))
        return [t for t in texts if t]

    def _first_of_next(self, above: int, line: int, margin: int, opens: bool) -> int:
        """The first line between two that belongs to the lower one: comments further in are those of the upper one's
        blocks, and those right below it, with a blank line below them, are its own.
        """
        if opens:
            return above + 1
        inner = [n for n in range(above + 1, line) if self._is_comment(n) and self._indentation(n) > margin]
        at = inner[-1] + 1 if inner else above + 1
        end = next((n for n in range(at, line) if not self._is_comment(n)), line)
        return end if end < line else at

    def _opens(self, n: int, line: int) -> bool:
        """Whether line `n` opens the block that another stands in, or stands above the file."""
        if n < 1 or self._indentation(n) < self._indentation(line):
            return True
        return self._indentation(n) > self._indentation(line) and OPENS.search(self._line(n)) is not None

    def _indentation(self, n: int) -> int:
        return self.text.indentations[n - 1]

    def _is_comment(self, n: int) -> bool:
        return self._line(n).lstrip().startswith("#")

    def _is_empty(self, n: int) -> bool:
        return not self._line(n).strip() or self._is_comment(n)

    def _line(self, n: int) -> str:
        return self.text.lines[n - 1]

    def shares_a_line(self, s: ast.stmt) -> bool:
        """Whether other code stands on the statement's first or last line (`a = 1; b = 2`, `if x: y()`)."""
        start, stop = self.text.span(s)
        first, _ = self.text.line_span(self.text.line_of(start), self.text.line_of(start))
        _, end = self.text.line_span(s.end_lineno or 1, s.end_lineno or 1)
        rest = self.text.text[stop:end].strip()
        return self.text.text[first:start].strip() != "" or (rest != "" and not rest.startswith("#"))

    def render(
        self, s: ast.stmt, replaced: dict[tuple[int, int], str], floor: int = 1, ends: bool = False
    ) -> list[str]:
        """The statement's lines at no indentation, comments included, with spans of the text replaced; `ends`: those
        too that end the block that it ends.
        """
        start, stop = self.text.span(s)
        if self.shares_a_line(s):
            body = self._replaced(start, stop, replaced)
            return lines_of(body)
        first, last = self.with_comments(s, floor)
        a, b = self.text.line_span(first, max(last, self.to_the_end(s)) if ends else last)
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
    if not any(mark in DOCSTRING.sub("", block) for mark in SPANS_LINES):
        for string in DOCSTRING.finditer(block):
            first, last = (len(LINE_END.findall(block, 0, at)) for at in string.span())
            fixed.update(range(first + 1, last + 1))
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

"""Where the nodes of an `ast` stand in the text: character offsets, from ast's UTF-8 columns."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import Any

# ast ends lines at these alone; str.splitlines also splits at form feeds and separators, which strings may hold
LINE_END = re.compile(r"\r\n?|\n")
BLOCKS = ("finalbody", "orelse", "handlers", "body", "cases")
# the blocks of each kind of statement, handler and case, the last one first
OF_KINDS: dict[type, list[str]] = {
    kind: [name for name in BLOCKS if name in kind._fields]
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, (ast.stmt, ast.ExceptHandler, ast.match_case))
}


def lines_of(text: str) -> list[str]:
    """The lines of a text as Python counts them, without their ends."""
    if "\r" not in text:
        return text.removesuffix("\n").split("\n") if text else []
    return [line.rstrip("\r\n") for line in _with_ends(text)]


def _with_ends(text: str) -> io.StringIO:
    return io.StringIO(text, newline="")  # splits where `ast` does, and keeps the ends


class Text:
    """A source text with the offsets of its lines.

    `ast` counts columns in UTF-8 bytes; every offset here is in characters, so that slices of the text are right.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [*accumulate(map(len, _with_ends(text)), initial=0)]
        if len(self.starts) > 1 and not text.endswith(("\r", "\n")):
            self.starts.pop()  # where a next line would begin
        self._ascii = text.isascii()

    @cached_property
    def newline(self) -> str:
        """The line end that new lines get: that of the first line."""
        end = LINE_END.search(self.text)
        return end.group() if end is not None else "\n"

    @cached_property
    def lines(self) -> list[str]:
        """The lines with their ends, as many as `starts`."""
        lines = [*_with_ends(self.text)]
        return [*lines, ""] if len(lines) < len(self.starts) else lines

    @cached_property
    def indentations(self) -> list[int]:
        """How far in each line stands, in columns."""
        expanded = ((line.expandtabs() if "\t" in line else line) for line in self.lines)
        return [len(line) - len(line.lstrip()) for line in expanded]

    def column(self, line: int, utf8_column: int) -> int:
        """The 0-based character column for ast's UTF-8 column on a 1-based line."""
        if self._ascii:
            return utf8_column
        start = self.starts[line - 1]
        stop = self.starts[line] if line < len(self.starts) else len(self.text)
        return len(self.text[start:stop].encode("utf-8")[:utf8_column].decode("utf-8", "ignore"))

    def offset(self, line: int, utf8_column: int) -> int:
        return self.starts[line - 1] + (utf8_column if self._ascii else self.column(line, utf8_column))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """First and one past the last character of a node; a decorated definition starts at its first decorator."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        decorators = getattr(node, "decorator_list", None)
        if decorators:
            first = decorators[0]
            at = self.offset(first.lineno, first.col_offset)
            return self.text.rindex("@", 0, at), self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        return self.offset(line, column), self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def get(self, node: ast.AST) -> str:
        start, stop = self.span(node)
        return self.text[start:stop]

    def method_of(self, call: ast.Call) -> tuple[int, int]:
        """The span of `.to(device)` in `(a / b).to(device)`: behind the parentheses around what it is called on."""
        assert isinstance(call.func, ast.Attribute)
        stop = self.span(call.func)[1] - len(call.func.attr)
        return len(self.text[: self.text.rindex(".", 0, stop)].rstrip()), self.span(call)[1]

    def is_concatenated(self, string: ast.JoinedStr) -> bool:
        """Whether several strings one after another make it: one node to `ast`, another kind of node to libcst."""
        depth = count = 0
        try:
            for token in tokenize.generate_tokens(io.StringIO(f"({self.get(string)})").readline):
                name = tokenize.tok_name[token.type]
                count += depth == 0 and name in ("STRING", "FSTRING_START")
                depth += (name == "FSTRING_START") - (name == "FSTRING_END")
        except (tokenize.TokenError, SyntaxError):
            return False
        return count > 1

    def key(self, node: ast.AST) -> tuple[int, int, int, int]:
        """(line, column, end line, end column) in characters, as libcst's PositionProvider tells them."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        last: Any = _last_of(node)
        end = last.end_lineno
        return line, self.column(line, column), end, self.column(end, last.end_col_offset)

    def is_elif(self, branch: ast.If) -> bool:
        """Whether a condition is written as the `elif` of another."""
        return self.text.startswith("elif", self.span(branch)[0])

    def line_of(self, offset: int) -> int:
        """The 1-based line of a character offset."""
        return bisect_right(self.starts, offset)

    def line_span(self, first: int, last: int) -> tuple[int, int]:
        """The offsets of whole lines, first to last (1-based, both included), line ends with them."""
        stop = self.starts[last] if last < len(self.starts) else len(self.text)
        return self.starts[first - 1], stop

    def margin(self, node: ast.AST) -> str:
        """What stands before a node on its first line: its indentation, where it begins the line."""
        start, _ = self.span(node)
        return self.text[self.starts[self.line_of(start) - 1] : start]


def _last_of(node: ast.AST) -> ast.AST:
    """The statement that ends a block: the block's own end counts the semicolon after it, if there is one."""
    while blocks := OF_KINDS.get(node.__class__):
        node = next(block for name in blocks if (block := getattr(node, name)))[-1]
    return node

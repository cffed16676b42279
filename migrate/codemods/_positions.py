"""Where each node of a libcst module stands, as its PositionProvider tells it, in half the time.

A codegen state is all that libcst asks for (https://libcst.readthedocs.io/en/latest/metadata.html): this one keeps no
text, and positions as plain numbers.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

NEWLINE = re.compile(r"\r\n?|\n")
Place = tuple[int, int]
Range = tuple[int, int, int, int]  # first line (from 1) and column (from 0), and those of the end


def positions_of(module: cst.Module) -> dict[int, Range]:
    """The places of the nodes of a module by their `id`: a node's own hash is a call of a method."""
    state = _State(module)
    module._codegen(state)  # type: ignore[arg-type]
    return state.found


class _State:
    def __init__(self, module: cst.Module) -> None:
        self.default_indent, self.default_newline = module.default_indent, module.default_newline
        self.provider, self.tokens = None, [""]  # what libcst looks at of the text: that there is one
        self.indent_tokens: list[str] = []
        self.line, self.column = 1, 0
        self.found: dict[int, Range] = {}
        self.starts: list[Place] = []

    def increase_indent(self, value: str) -> None:
        self.indent_tokens.append(value)

    def decrease_indent(self) -> None:
        self.indent_tokens.pop()

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.column += len(token)

    def add_token(self, value: str) -> None:
        if "\n" not in value and "\r" not in value:
            self.column += len(value)
            return
        parts = NEWLINE.split(value)
        self.line += len(parts) - 1
        self.column = len(parts[-1])

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.starts.append((self.line, self.column))

    def after_codegen(self, node: cst.CSTNode) -> None:
        line, column = self.starts.pop()
        if id(node) not in self.found:
            self.found[id(node)] = (line, column, self.line, self.column)

    def pop_trailing_newline(self) -> None:
        """No text is kept."""

    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: Any = None, end_node: Any = None
    ) -> _Recorded:
        return _Recorded(self, node, start_node, end_node)


class _Recorded:
    """The position of a node without the whitespace around it."""

    __slots__ = ("column", "end", "line", "node", "start", "state")

    def __init__(self, state: _State, node: cst.CSTNode, start: Any, end: Any) -> None:
        self.state, self.node, self.start, self.end = state, node, start, end

    def __enter__(self) -> None:
        self.line, self.column = self.state.line, self.state.column

    def __exit__(self, *_: object) -> None:
        state, line, column = self.state, self.line, self.column
        if self.start is not None:
            line, column = state.found[id(self.start)][:2]
        end = (state.line, state.column) if self.end is None else state.found[id(self.end)][2:]
        state.found[id(self.node)] = (line, column, *end)

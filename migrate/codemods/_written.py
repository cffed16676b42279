"""The text of a libcst module, as its own `code` gives it, without a context manager for every place in it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import libcst as cst

NOTHING = nullcontext()


def code_of(module: cst.Module) -> str:
    state = _State(module)
    module._codegen(state)  # type: ignore[arg-type]  # all that libcst asks of one, as in `_positions.py`
    return "".join(state.tokens)


class _State:
    """A codegen state that keeps the text, and no positions."""

    def __init__(self, module: cst.Module) -> None:
        self.default_indent, self.default_newline = module.default_indent, module.default_newline
        self.provider = None
        self.tokens: list[str] = []
        self.indent_tokens: list[str] = []
        self.add_token = self.tokens.append
        self.increase_indent = self.indent_tokens.append
        self.decrease_indent = self.indent_tokens.pop

    def add_indent_tokens(self) -> None:
        self.tokens += self.indent_tokens

    def before_codegen(self, node: cst.CSTNode) -> None:
        """No position is kept."""

    after_codegen = before_codegen

    def pop_trailing_newline(self) -> None:
        if self.tokens:
            self.tokens.pop()

    def record_syntactic_position(self, node: cst.CSTNode, **_: Any) -> AbstractContextManager[None]:
        return NOTHING

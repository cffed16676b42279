"""Quotes in f-strings: what is written there has others than the string's own, as Python wants before 3.12."""

from __future__ import annotations

from typing import Any

import libcst as cst


def with_other_quotes(original: cst.FormattedString, updated: cst.FormattedString) -> cst.FormattedString:
    """An f-string of which expressions were rewritten."""
    if updated is original:
        return updated
    turned: Any = updated.visit(_Turned(original.start.lstrip("fFrR")))
    return turned


class _Turned(cst.CSTTransformer):
    def __init__(self, around: str) -> None:
        super().__init__()
        self.around = around

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        return updated_node.with_changes(value=quoted(updated_node.value, self.around))


def quoted(text: str, around: str) -> str:
    """The source of an expression with other quotes than those around it."""
    other = '"' if around == "'" else "'"
    return text.replace(around, other) if len(around) == 1 and other not in text else text

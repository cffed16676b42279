"""Edits of what stands in f-strings and is to go although it shows its own text: `{dist.get_rank()=}`.

The whole string is planned, and what is to change in it is found by its source, which means the same all over it.
"""

from __future__ import annotations

import ast
from typing import Any

from ..facts.script import Facts
from ._quotes import quoted
from .base import Change, Codemod, kind_of


class InStrings:
    """What a codemod changes in f-strings, one change a string."""

    def __init__(self, facts: Facts, codemod: Codemod) -> None:
        self.facts, self.codemod = facts, codemod
        self.new: dict[ast.JoinedStr, dict[str, str]] = {}
        self.nodes: dict[ast.JoinedStr, list[ast.AST]] = {}

    def add(self, node: ast.AST, new: str) -> None:
        """Plan the new source of an expression in an f-string."""
        string = [u for u in self.facts.scopes.ancestors(node) if isinstance(u, ast.JoinedStr)][-1]
        self.new.setdefault(string, {})[ast.unparse(node)] = new
        self.nodes.setdefault(string, []).append(node)

    def changes(self, why: str) -> list[Change]:
        found = []
        for string, new in self.new.items():
            said = ", ".join(f"`{before}` is `{after}`" for before, after in new.items())
            gone = tuple(child for n in self.nodes[string] for child in ast.iter_child_nodes(n))
            kinds = {kind_of(self.facts, n) for n in self.nodes[string]}
            edit = self.codemod.edit(self.facts, string, f"{said}: {why}")
            found.append(Change(string, edit, _within(new, kinds), gone))
        return found


def _within(new: dict[str, str], kinds: set[str]) -> Any:
    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        quotes: list[str] = []

        class Replaced(cst.CSTTransformer):
            def on_visit(self, node: Any) -> bool:
                if isinstance(node, cst.FormattedString):
                    quotes.append(node.start.lstrip("fFrR"))
                return True

            def on_leave(self, before: Any, after: Any) -> Any:
                if isinstance(before, cst.FormattedString):
                    quotes.pop()
                if type(before).__name__ not in kinds:
                    return after
                try:
                    code = cst.Module([]).code_for_node(before).strip()  # over several lines in `f"""`
                    text = new.get(ast.unparse(ast.parse(f"({code})", mode="eval")))
                except SyntaxError:
                    return after
                return after if text is None else cst.parse_expression(quoted(text, quotes[-1]))

        return updated.visit(Replaced())

    return rewrite

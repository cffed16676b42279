"""All facts of one file, each worked out when it is first asked for."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TypeVar

from .devices import Devices
from .names import Names
from .placed import Placed
from .scopes import Scopes
from .text import Text

N = TypeVar("N", bound=ast.AST)


class Facts:
    """The facts of one file, from `ast` alone."""

    def __init__(self, text: str, tree: ast.Module | None = None) -> None:
        self.text = Text(text)
        self.tree = tree if tree is not None else ast.parse(text)

    @cached_property
    def names(self) -> Names:
        return Names(self.tree)

    @cached_property
    def scopes(self) -> Scopes:
        return Scopes(self.tree)

    @cached_property
    def devices(self) -> Devices:
        return Devices(self.tree, self.names, self.scopes)

    @cached_property
    def placed(self) -> Placed:
        return Placed(self)

    @cached_property
    def _by_type(self) -> dict[type, list[ast.AST]]:
        by_type: dict[type, list[ast.AST]] = {}
        for node in ast.walk(self.tree):
            by_type.setdefault(type(node), []).append(node)
        return by_type

    def walk(self, kind: type[N]) -> list[N]:
        """All nodes of one type."""
        return self._by_type.get(kind, [])  # type: ignore[return-value]

    def short(self, node: ast.AST, width: int = 60) -> str:
        """The node's source on one line, cut to a readable width."""
        line = " ".join(self.text.get(node).split())
        return line if len(line) <= width else line[: width - 3] + "..."

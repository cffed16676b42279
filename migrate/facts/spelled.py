"""The source of an expression, at once for names and dotted names, of which most are."""

from __future__ import annotations

import ast

from .nodes import once_a_node


def spelled(node: ast.AST) -> str:
    """What `ast.unparse` gives."""
    return dotted(node) or _unparsed(node)


_unparsed = once_a_node(ast.unparse)


def dotted(node: ast.AST) -> str | None:
    """The source of a name, or of a dotted name; None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def are_alike(one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions have the same source."""
    return one.__class__ is other.__class__ and spelled(one) == spelled(other)

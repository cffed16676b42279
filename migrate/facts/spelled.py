"""The source of an expression, at once for names and dotted names, of which most are."""

from __future__ import annotations

import ast


def spelled(node: ast.AST) -> str:
    """What `ast.unparse` gives."""
    parts: list[str] = []
    at = node
    while isinstance(at, ast.Attribute):
        parts.append(at.attr)
        at = at.value
    if not isinstance(at, ast.Name):
        return ast.unparse(node)
    return ".".join([at.id, *reversed(parts)])


def are_alike(one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions have the same source."""
    return one.__class__ is other.__class__ and spelled(one) == spelled(other)

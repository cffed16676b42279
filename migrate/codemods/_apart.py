"""`a, b = x, y` as `a = x; b = y`, where what is assigned first is nothing to what is computed second."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..facts.nodes import walk
from ..facts.script import Facts


def parts(facts: Facts, s: ast.stmt) -> list[tuple[ast.Name | ast.Attribute, ast.expr]]:
    """The names or attributes of self and what each is given; none where they need one another or have comments."""
    target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    value = s.value if isinstance(s, ast.Assign) else None
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)):
        return []
    found: list[tuple[ast.Name | ast.Attribute, ast.expr]] = []
    for one, given in zip(target.elts, value.elts, strict=True):
        if not (isinstance(one, ast.Name) or is_own(one)) or isinstance(given, ast.Starred):
            return []
        found.append((one, given))  # type: ignore[arg-type]
    stored = {_word(t) for t, _ in found}
    if len(stored) < len(found) or "#" in facts.text.get(s) or _reads(facts, value, stored):
        return []
    return found


def _reads(facts: Facts, value: ast.Tuple, stored: set[str]) -> bool:
    """Whether a value may be another once those before it have been assigned: it names them, or is handed `self`."""
    for n in walk(value):
        up = facts.scopes.parents.get(n)
        if isinstance(n, ast.Name) and n.id == "self":
            call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) else None
            if not isinstance(up, ast.Attribute) or (isinstance(call, ast.Call) and call.func is up):
                return True
        if isinstance(n, (ast.Name, ast.Attribute)) and _word(n) in stored:
            return True
    return False


def _word(n: ast.Name | ast.Attribute) -> str:
    return f".{n.attr}" if isinstance(n, ast.Attribute) else n.id


def is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def apart(made: Callable[[Any, Any], Any] | None = None) -> Any:
    """A statement for each part, on the line that they had; `made(target, value)` gives another than the assignment."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        end = cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" "))
        statements: list[Any] = []
        for target, element in zip(updated.targets[0].target.elements, updated.value.elements, strict=True):
            other = made(target.value, element.value) if made is not None else None
            one = other if other is not None else cst.Assign([cst.AssignTarget(target.value)], element.value)
            statements.append(one.with_changes(semicolon=end))
        statements[-1] = statements[-1].with_changes(semicolon=updated.semicolon)
        return cst.FlattenSentinel(statements)

    return rewrite

"""T3, several at once: `self.mean, self.std = torch.zeros(3), torch.ones(3)`."""

from __future__ import annotations

import ast
from typing import Any

from ..facts.nodes import walk
from ..facts.script import Facts


def tensors_of(facts: Facts, s: ast.stmt) -> dict[str, ast.expr]:
    """The attributes of self that a statement gives tensors made there, one each; none where it gives other things."""
    target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    value = s.value if isinstance(s, ast.Assign) else None
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)):
        return {}
    found = {}
    for one, given in zip(target.elts, value.elts, strict=True):
        own = isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "self"
        if not own or not facts.tensors.is_tensor(given):
            return {}
        found[one.attr] = given  # type: ignore[attr-defined]
    read = {n.attr for n in walk(value) if isinstance(n, ast.Attribute)}
    return found if len(found) == len(target.elts) and not read & set(found) else {}


def registered(names: list[str]) -> Any:
    """A statement for each of them, on the line that they had."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        register = cst.Attribute(cst.Name("self"), cst.Name("register_buffer"))
        statements = []
        for name, element in zip(names, updated.value.elements, strict=True):
            call = cst.Call(register, [cst.Arg(cst.SimpleString(f'"{name}"')), cst.Arg(element.value)])
            statements.append(cst.Expr(call, cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" "))))
        statements[-1] = statements[-1].with_changes(semicolon=updated.semicolon)
        return cst.FlattenSentinel(statements)

    return rewrite


def is_parameter(facts: Facts, value: ast.expr | None) -> bool:
    """`nn.Parameter(...)`"""
    return isinstance(value, ast.Call) and facts.names.resolve(value.func) == "torch.nn.Parameter"

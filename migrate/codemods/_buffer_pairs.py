"""T3, several at once: `self.mean, self.std = torch.zeros(3), torch.ones(3)`."""

from __future__ import annotations

import ast
from typing import Any

from ..facts.script import Facts
from ._apart import apart, is_own, parts


def tensors_of(facts: Facts, s: ast.stmt) -> dict[str, ast.expr]:
    """The attributes of self that a statement of several gives tensors made there."""
    own = [(t, v) for t, v in parts(facts, s) if is_own(t)]
    return {t.attr: v for t, v in own if isinstance(t, ast.Attribute) and facts.tensors.is_tensor(v)}


def registered(names: set[str]) -> Any:
    """A statement for each of several parts, these attributes as buffers."""

    def made(target: Any, value: Any) -> Any:
        import libcst as cst

        name = target.attr.value if isinstance(target, cst.Attribute) else None
        if name not in names:
            return None
        register = cst.Attribute(cst.Name("self"), cst.Name("register_buffer"))
        return cst.Expr(cst.Call(register, [cst.Arg(cst.SimpleString(f'"{name}"')), cst.Arg(value)]))

    return apart(made)


def is_parameter(facts: Facts, value: ast.expr | None) -> bool:
    """`nn.Parameter(...)`"""
    return isinstance(value, ast.Call) and facts.names.resolve(value.func) == "torch.nn.Parameter"

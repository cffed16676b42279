"""Calls that give several tensors at once: `torch.meshgrid(a, b)`, `x.chunk(2)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .script import Facts

SEVERAL = set("meshgrid chunk split tensor_split unbind broadcast_tensors sort topk max min svd qr eigh unique".split())
ALWAYS_SEVERAL = ("meshgrid", "chunk", "split", "tensor_split", "unbind", "broadcast_tensors")


def taken_apart(facts: Facts, call: ast.expr) -> ast.expr | None:
    """The first of the tensors that such a call is of: the others are where it is; None for any other call."""
    if not isinstance(call, ast.Call):
        return None
    package, _, name = (facts.names.resolve(call.func) or "").rpartition(".")
    if package:
        first = call.args[0] if package in ("torch", "torch.linalg") and name in SEVERAL and call.args else None
        return first.elts[0] if isinstance(first, (ast.Tuple, ast.List)) and first.elts else first
    f = call.func
    return f.value if isinstance(f, ast.Attribute) and f.attr in SEVERAL else None

"""What says how large a tensor is, or of which kind: numbers and words, which are on no device."""

from __future__ import annotations

import ast

SAYS = ("shape", "ndim", "dtype", "device")
ASKED = ("size", "numel", "nelement", "dim", "stride")


def is_size(node: ast.expr) -> bool:
    """`x.shape`, `x.shape[0]`, `x.size(0)`, `len(x)`."""
    if isinstance(node, ast.Subscript):
        return is_size(node.value)
    if isinstance(node, ast.Call):
        f = node.func
        return f.attr in ASKED if isinstance(f, ast.Attribute) else isinstance(f, ast.Name) and f.id == "len"
    return isinstance(node, ast.Attribute) and node.attr in SAYS

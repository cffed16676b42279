"""What says how large a tensor is, or of which kind: numbers and words, which are on no device."""

from __future__ import annotations

import ast
import re

SAYS = ("shape", "ndim", "dtype", "device")
ASKED = ("size", "numel", "nelement", "dim", "stride")
COUNTS = re.compile(r"(num|number_of)_[a-z_]+\Z")  # graph.num_nodes()


def is_size(node: ast.expr) -> bool:
    """`x.shape`, `x.shape[0]`, `x.size(0)`, `len(x)`, `graph.num_nodes()`."""
    if isinstance(node, ast.Subscript):
        return is_size(node.value)
    if isinstance(node, ast.Call):
        f = node.func
        if isinstance(f, ast.Attribute):
            return f.attr in ASKED or COUNTS.match(f.attr) is not None
        return isinstance(f, ast.Name) and f.id == "len"
    return isinstance(node, ast.Attribute) and node.attr in SAYS

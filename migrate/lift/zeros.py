"""Values that are nothing but zeros: where a sum over samples begins."""

from __future__ import annotations

import ast

from ..facts.script import Facts

OF_ZEROS = ("torch.zeros", "torch.zeros_like", "numpy.zeros", "numpy.zeros_like")
OF_VALUES = ("torch.tensor", "torch.as_tensor", "numpy.array", "numpy.float32", "numpy.float64")
MOVES = ("to", "cuda", "cpu", "float", "double", "long")


def is_zeros(facts: Facts, value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return type(value.value) in (int, float) and value.value == 0
    if isinstance(value, ast.List | ast.Tuple):
        return all(is_zeros(facts, e) for e in value.elts)
    if isinstance(value, ast.Dict):
        return all(k is not None for k in value.keys) and all(is_zeros(facts, v) for v in value.values)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return isinstance(value.left, ast.List) and is_zeros(facts, value.left)
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute) and value.func.attr in MOVES and isinstance(value.func.value, ast.Call):
        return is_zeros(facts, value.func.value)
    if isinstance(value.func, ast.Name) and value.func.id in ("float", "int"):
        return not value.args or is_zeros(facts, value.args[0])
    full = facts.names.resolve(value.func)
    return full in OF_ZEROS or (full in OF_VALUES and bool(value.args) and is_zeros(facts, value.args[0]))

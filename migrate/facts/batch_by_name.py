"""Operands that are given by name: `torch.matmul(input=a, other=b)` is `torch.matmul(a, b)`."""

from __future__ import annotations

import ast

from .batch_operations import PRODUCTS
from .tensor_methods import METHODS

# of torch's functions and the methods of tensors, in the order of their places, https://pytorch.org/docs/stable/torch.html
FIRST = ("input", "x1", "a", "tensors")
MIDDLE = ("mat1", "batch1", "tensor1", "vec1")
SECOND = ("other", "x2", "b", "mat2", "batch2", "tensor2", "vec2", "mat", "vec", "tensor")
OPERANDS = (*FIRST, *MIDDLE, *SECOND)


def with_places(call: ast.Call, full: str | None) -> ast.Call | None:
    """The call with its operands by place; None where it gives none by name, or is neither torch's nor a tensor's.

    `full`: what is called, where that resolves.
    """
    if full is None:
        known = isinstance(call.func, ast.Attribute) and call.func.attr in METHODS | PRODUCTS
    else:
        known = full.startswith("torch.")
    if not known:
        return None
    names = [k.arg for k in call.keywords]
    if not any(n in (*MIDDLE, *SECOND) for n in names) or None in names:
        return None
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    operands = sorted((k for k in call.keywords if k.arg in OPERANDS), key=lambda k: OPERANDS.index(k.arg or ""))
    others = [k for k in call.keywords if k.arg not in OPERANDS]
    return ast.copy_location(ast.Call(call.func, [*call.args, *(k.value for k in operands)], others), call)

"""Types of tensors that name the CPU as well as a dtype: `x.type(torch.FloatTensor)` brings a tensor there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .script import Facts

DTYPES = {
    "FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "LongTensor": "int64",
    "IntTensor": "int32", "ByteTensor": "uint8", "BoolTensor": "bool", "ShortTensor": "int16", "CharTensor": "int8",
    "BFloat16Tensor": "bfloat16",
}  # fmt: skip


def cast_on_cpu(facts: Facts, call: ast.Call) -> str | None:
    """`FloatTensor` of `x.type(torch.FloatTensor)` and `x.type("torch.FloatTensor")`."""
    f = call.func
    if not (isinstance(f, ast.Attribute) and f.attr == "type" and len(call.args) == 1 and not call.keywords):
        return None
    given = call.args[0]
    full = given.value if isinstance(given, ast.Constant) else facts.names.resolve(given)
    package, _, kind = full.rpartition(".") if isinstance(full, str) else ("", "", "")
    return kind if package == "torch" and kind in DTYPES else None

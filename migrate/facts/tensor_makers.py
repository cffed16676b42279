"""The functions of torch that make a tensor of numbers, and what they may be told of where."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .script import Facts

FLOATS = {
    f"torch.{n}"
    for n in ("zeros", "ones", "rand", "randn", "eye", "linspace", "empty", "Tensor", "FloatTensor", "normal")
}
TAKES_DEVICE = {
    f"torch.{n}"
    for n in "zeros ones full empty rand randn randint randperm arange linspace logspace eye tensor".split()
}
OF_THE_CPU = {
    f"torch.{n}"
    for n in "from_numpy Tensor FloatTensor DoubleTensor IntTensor LongTensor ByteTensor BoolTensor".split()
}  # whatever their arguments are
SAYS_WHERE = ("device", "out", "generator", "pin_memory", None)  # by one of these the place is decided; None: `**these`


def is_open(facts: Facts, call: ast.Call) -> bool:
    """Whether a call takes a device, by its keyword alone, and is told nothing of where: `torch.zeros(3, *sizes)`."""
    told = any(k.arg in SAYS_WHERE for k in call.keywords)
    return facts.names.resolve(call.func) in TAKES_DEVICE and not told

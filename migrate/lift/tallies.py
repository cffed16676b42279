"""Functions that count a batch's samples by their values: what they give for two shares adds up to the whole batch's.

As long as they are told which values there are: a share may lack some of them.
"""

from __future__ import annotations

import ast

from ..facts.arguments import argument_at, is_none
from ..facts.script import Facts

COUNTS = ("torch.bincount", "numpy.bincount")
TENSORS = ("torch.from_numpy", "torch.as_tensor", "torch.tensor")
CROSSES = "sklearn.metrics.confusion_matrix"
SAME_NUMBERS = ("reshape", "view", "flatten", "numpy", "cpu", "detach", "long", "float", "double", "to", "type")


def is_tally(facts: Facts, value: ast.expr) -> bool:
    """`y.bincount(minlength=10)`, `x.histc(5, 0, 1)`, `confusion_matrix(y, guess, labels=[0, 1])`, in any shape."""
    while isinstance(value, ast.Call) and ((full := facts.names.resolve(value.func)) is None or full in TENSORS):
        if full in TENSORS and value.args:
            value = value.args[0]
            continue
        if not isinstance(value.func, ast.Attribute):
            return False
        if value.func.attr == "bincount":
            return _is_plain(value, "minlength", 1, {"weights": 0})
        if value.func.attr == "histc":
            return _has_range(value, 1)
        if value.func.attr not in SAME_NUMBERS:
            return False
        value = value.func.value
    if not isinstance(value, ast.Call):
        return False
    if full in COUNTS:
        return _is_plain(value, "minlength", 2, {"weights": 1})
    if full == "torch.histc":
        return _has_range(value, 2)
    return full == CROSSES and _is_plain(value, "labels", 2, {"sample_weight": 3, "normalize": 4})


def _has_range(call: ast.Call, place: int) -> bool:
    """Whether a histogram is told its least and its largest value: the samples say them else, or where both are one."""
    ends = [argument_at(call, name, place + i) for i, name in enumerate(("min", "max"))]
    return None not in ends and len({ast.unparse(e) for e in ends if e is not None}) == 2


def _is_plain(call: ast.Call, values: str, place: int, scaled: dict[str, int]) -> bool:
    """Whether a call tells which values there are, and counts each sample once."""
    told = argument_at(call, values, place)
    others = [argument_at(call, name, at) for name, at in scaled.items()]
    return told is not None and not is_none(told) and all(o is None or is_none(o) for o in others)

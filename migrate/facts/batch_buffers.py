"""Buffers that are given values of the samples: a device has its own, with those of its part of the batch."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .batch_functions import is_own
from .batch_values import Value

if TYPE_CHECKING:
    from .mixing import Run

COPIES = {
    "clone",
    "index_select",
    "gather",
    "take",
    "masked_select",
    "mean",
    "sum",
    "float",
    "double",
    "half",
    "repeat",
}


def keep(run: Run, at: ast.AST, kept: ast.expr, value: Value) -> None:
    """What is assigned, or changed in place, by `at`: `self.bank[i] = z`, `memory.index_copy_(0, y, z)`."""
    while isinstance(kept, (ast.Subscript, ast.Call)) or (isinstance(kept, ast.Attribute) and not _ends(run, kept)):
        if isinstance(kept, ast.Call) and getattr(kept.func, "attr", "").rstrip("_") in COPIES:
            return
        kept = kept.func if isinstance(kept, ast.Call) else kept.value
    if value.kind != "plain" and isinstance(kept, (ast.Attribute, ast.Name)) and is_buffer(run, kept):
        run.flow.mixes.append(at)
        run.flow.kept.append(at)


def refill(run: Run, changed: ast.expr, name: str, value: Value) -> None:
    """`input.resize_as_(x).copy_(x)`: a tensor that the script made before holds the samples from there on."""
    while True:
        if isinstance(changed, ast.Call) and isinstance(changed.func, ast.Attribute) and changed.func.attr[-1] == "_":
            changed = changed.func.value
        elif isinstance(changed, ast.Attribute) and changed.attr == "data":
            changed = changed.value
        else:
            break
    if name != "copy_" or value.kind != "batch" or not (isinstance(changed, ast.Name) or is_own(changed)):
        return
    if run.value(changed).kind == "plain" and not is_buffer(run, changed):
        run.env[ast.unparse(changed)] = value


def _ends(run: Run, kept: ast.Attribute) -> bool:
    return is_own(kept) or run.value(kept).buffer


def is_buffer(run: Run, e: ast.Attribute | ast.Name) -> bool:
    """Whether a name or an attribute is a buffer of the module, or was given one."""
    if is_own(e) and run.holder is not None and e.attr in run.mixing.buffers_of(run.holder):
        return True
    return run.env[key].buffer if (key := ast.unparse(e)) in run.env else not is_own(e) and run.value(e).buffer

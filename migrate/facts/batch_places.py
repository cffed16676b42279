"""The dimension of the samples is indexed: a slice of them, one, some by their values, by their places, in an order."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .batch_functions import held
from .batch_numbers import EACH, WHOLE
from .batch_values import REDUCED, Value, replace
from .batch_views import numbers

if TYPE_CHECKING:
    from .mixing import Run

ARRAYS = {"torch.tensor", "torch.as_tensor", "torch.LongTensor", "torch.IntTensor", "numpy.array", "numpy.asarray"}


def indexed(run: Run, e: ast.Subscript, value: Value, part: ast.expr, new: int, nth: int, orders: list[bool]) -> Value:
    """What a value is behind an index of its samples; `new`: where its dimension is then."""
    if isinstance(part, ast.Slice):
        cut = part.lower is not None or part.upper is not None or part.step is not None
        found = replace(value, dim=new, views=1 if cut else value.views, flat=value.flat and not new)
        one = part.lower is not None and run.value(part.lower).counts  # z[i : i + 1]
        return replace(found, picked=not one, cut=ast.unparse(part)) if cut and value.views == 1 else found
    if isinstance(part, ast.Constant) or (isinstance(part, ast.UnaryOp) and isinstance(part.operand, ast.Constant)):
        by_name = isinstance(getattr(part, "value", 0), str)  # out["logits"], batch["inputs"]["ids"]
        if not by_name and run.shapes.is_tensor(e.value):
            run.flow.mixes.append(e)  # the first sample: each share has its own
        return replace(value, holds=False, loose=True, items=()) if by_name else REDUCED
    if any(orders):
        run.flow.mixes.append(e)  # x[torch.randperm(n)]
    index = run.value(part)
    if index.sorts is not None:
        run.flow.mixes.append(index.sorts)  # risk[torch.argsort(time)]
    if index.places in (EACH, WHOLE):
        return replace(value, dim=new)  # z[torch.arange(len(z)), y]
    if isinstance(part, ast.Name) and index.counts:
        return replace(value, dim=new, cut=part.id)  # z[i] of `for i in range(len(z))`
    if index.kind == "plain" and _are_written_out(run, part):
        return replace(value, dim=new, picked=True, cut=ast.unparse(part), views=1)
    return replace(value, dim=new, picked=value.picked or index.kind == "batch" or bool(index.places))


def column(found: Value, whole: Value, behind: list[ast.expr]) -> Value:
    """`z[:, 0]`: one number a sample, of a matrix; of more than that the first part of each."""
    places = [p for p in behind if numbers(p) and not isinstance(p, (ast.List, ast.Tuple))]
    new = [p for p in behind if isinstance(p, ast.Constant) and p.value is None]
    if found.kind != "batch" or found.dim != 0 or found.holds or len(places) != 1 or len(places + new) != len(behind):
        return found
    if whole.apart or whole.rank == 3:
        return replace(found, apart=bool(new), rank=0, width="")  # x[:, None][:, 0]
    flat = whole.rank == 2 or (bool(whole.width) and not whole.rank)  # a layer's outputs
    return replace(found, vector=not new, flat=flat and not new, apart=bool(new), rank=0, width="")


def _are_written_out(run: Run, part: ast.expr, depth: int = 0) -> bool:
    """`z[[0, 2]]`, `z[pairs[0]]` of `pairs = torch.tensor([[0, 2], [1, 3]])`: places that stand in the source."""
    while isinstance(part, ast.Subscript):
        part = part.value
    if isinstance(part, (ast.List, ast.Tuple)):
        return bool(part.elts) and all(isinstance(n, (ast.Constant, ast.List, ast.Tuple)) for n in part.elts)
    if isinstance(part, ast.Call) and part.args and run.facts.names.resolve(part.func) in ARRAYS:
        return isinstance(part.args[0], (ast.List, ast.Tuple)) and _are_written_out(run, part.args[0])
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
        return _are_written_out(run, part.func.value, depth)  # pairs.to(z.device)
    if not isinstance(part, (ast.Name, ast.Attribute)) or depth > 3:
        return False
    made = held(run, part)
    return made is not None and made is not part and _are_written_out(run, made, depth + 1)

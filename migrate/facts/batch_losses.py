"""A loss over the samples, one number: whether that of the whole is the mean of those of its parts."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .batch_values import REDUCED, Value, replace
from .weighed import asked, weighs

if TYPE_CHECKING:
    from .mixing import Run


def loss_of(run: Run, call: ast.Call, made: list[ast.Call], given: list[Value]) -> Value:
    """What a loss gives; `made`: the calls that may have made it.

    A mean over weights, over the targets that count or over some of the samples is not that of the parts'.
    """
    by_place(run, call, given)
    of_batch = [v for v in given if v.kind == "batch" and not v.holds and v.dim == 0]
    if len({v.cut for v in of_batch if v.views == 1}) > 1:
        run.flow.mixes.append(call)  # F.mse_loss(z[:n], z[n:])
        return REDUCED

    def constant(e: ast.expr | None) -> object:
        e = run.constant(e) if e is not None else None
        return e.value if isinstance(e, ast.Constant) else ...

    picked = any(v.picked for v in of_batch) and asked([*made, call], constant) in (None, "mean")
    weighed = any(
        weighs(run.facts, [m], constant) and asked([m, call], constant) in (None, "mean") for m in made or [call]
    )
    return replace(REDUCED, bent=call) if picked or weighed else REDUCED


def by_place(run: Run, call: ast.Call, given: list[Value]) -> None:
    """`cross_entropy(a @ b.mT, torch.arange(len(a)))`: each sample has its place among the others."""
    if any(v.places for v in given) and any(v.kind == "batch" for v in given):
        run.flow.mixes.append(call)
    if any(v.counts for v in given):
        run.flow.mixes += [v.met for v in given if v.met is not None]

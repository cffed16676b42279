"""Operations whose dimensions have names in a text: `einsum("nd,md->nm", a, b)`, `rearrange(x, "b t d -> (b t) d")`.

Source: https://docs.pytorch.org/docs/stable/generated/torch.einsum.html and https://einops.rocks/api/rearrange/
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from .batch_values import REDUCED, Value, replace

if TYPE_CHECKING:
    from .mixing import Run

ADDS_UP = {"mean", "sum"}


def contracted(run: Run, call: ast.Call, operands: list[Value]) -> tuple[Value, bool]:
    """What `einsum` makes of its operands, and whether it meets samples with others."""
    text = text_of(run, call)
    if text is None:
        several = sum(v.kind == "batch" for v in operands) > 1
        return run.joined(operands), several  # nothing shows which of their dimensions meet
    inputs, arrow, output = text.partition("->")
    listed = call.args[1] if len(call.args) == 2 else None
    if isinstance(listed, (ast.List, ast.Tuple)):
        operands = [run.value(x) for x in listed.elts]
    terms = [_axes(term) for term in inputs.split(",")]
    axes = [
        axis for term, v in zip(terms, operands, strict=False) if v.kind == "batch" and (axis := _axis(term, v.dim))
    ]
    if not axes:
        return run.joined(operands), False
    first = next(v for v in operands if v.kind == "batch")
    left = _axes(output) if arrow else sorted(a for term in terms for a in term if sum(t.count(a) for t in terms) == 1)
    if len(set(axes)) > 1 or (left and axes[0] not in left):
        return first, True
    if not left:
        return REDUCED, False
    return replace(first, dim=left.index(axes[0]) if axes[0] in left else 0, rank=0, width=""), False


def text_of(run: Run, call: ast.Call) -> str | None:
    """The text among the arguments of a call, written out or by a name."""
    return next((text for a in call.args if (text := as_text(run, a)) is not None), None)


def as_text(run: Run, e: ast.expr) -> str | None:
    scope = run.facts.scopes.scope_of(e).lookup(e.id) if isinstance(e, ast.Name) else None
    values = run.facts.devices.assigned(e.id, scope) if isinstance(e, ast.Name) and scope is not None else None
    only = values[0] if values and len(values) == 1 else e
    return only.value if isinstance(only, ast.Constant) and isinstance(only.value, str) else None


def _axes(term: str) -> list[str]:
    """`bij`, `b i j`, `...d`: one name a dimension."""
    spaced = " " in term.strip()
    return term.split() if spaced else re.findall(r"\.\.\.|\w", term)


def _axis(term: list[str], dim: int) -> str:
    """The name of a dimension; what stands behind `...` has no known place."""
    known = term[: term.index("...") + 1] if "..." in term else term
    return known[dim] if dim < len(known) else known[-1] if known[-1:] == ["..."] else ""


def rearranged(run: Run, call: ast.Call, of: Value, text: str) -> Value:
    """What `rearrange`, `repeat` and `reduce` of einops make of a value."""
    before, _, after = text.partition("->")
    left, right = _groups(before), _groups(after)
    if of.kind != "batch" or of.holds or of.dim >= len(left):
        return run.joined([of])
    own = left[of.dim]
    sample = own[0]
    if len(own) > 1 and of.merged:
        of = replace(of, merged=False)  # (b t) d -> b t d
    elif len(own) > 1 and of.views != 1:
        sample = own[-1]  # (n b) d -> n b d, of two batches one after another
    elif len(own) > 1 and own not in right:
        run.flow.mixes.append(call)  # pairs of neighbours, or halves
    place = next((i for i, group in enumerate(right) if sample in group), None)
    if place is None:
        how = call.args[2] if len(call.args) > 2 else None
        if not (right == [] and isinstance(how, ast.Constant) and how.value in ADDS_UP):
            run.flow.mixes.append(call)
        return REDUCED
    group = right[place]
    apart = group[0] != sample  # (t b): the batch once for each t
    views = 0 if apart and own == [sample] else of.views if own == group else 1
    merged = len(group) > 1 and not apart
    found = replace(of, dim=place, views=views, merged=merged, rank=min(len(right), 3), flat=len(right) == 1, width="")
    return replace(found, last=0 < place == len(right) - 1)


def _groups(side: str) -> list[list[str]]:
    """The dimensions of one side: `(b t) d` as [["b", "t"], ["d"]]."""
    return [(a or b).split() for a, b in re.findall(r"\(([^)]*)\)|(\S+)", side)]

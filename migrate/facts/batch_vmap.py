"""`torch.vmap(f)(z)`: f sees one sample at a time, and all of them where it reads the batch beside its arguments.

Source: https://docs.pytorch.org/docs/stable/generated/torch.vmap.html
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import argument_at
from .batch_functions import held
from .batch_values import Value, replace
from .batch_views import numbers
from .nodes import walk

if TYPE_CHECKING:
    from .mixing import Run

VMAPS = ("torch.vmap", "torch.func.vmap", "functorch.vmap")


def mapped(run: Run, call: ast.Call, args: list[Value]) -> tuple[Value, bool] | None:
    """What a function gives that is made by vmap, and whether it meets samples with others; None for any other."""
    made = held(run, call.func)
    if not (isinstance(made, ast.Call) and made.args and run.facts.names.resolve(made.func) in VMAPS):
        return None
    of_batch = [v for v in args if v.kind == "batch"]
    if not of_batch:
        return None
    along = argument_at(made, "in_dims", 1)
    mixes = any(run.env[name].kind == "batch" for name in names_around(run, made.args[0]) if name in run.env)
    for nth, v in enumerate(args):
        given = along.elts[nth] if isinstance(along, ast.Tuple) and nth < len(along.elts) else along
        dim = [0] if given is None else numbers(given)
        nowhere = isinstance(given, ast.Constant) and given.value is None
        mixes = mixes or (v.kind == "batch" and not v.holds and (nowhere or (dim != [] and dim != [v.dim])))
    back = argument_at(made, "out_dims", 2)
    out = (numbers(back) or [0])[0] if back is not None else 0
    return replace(of_batch[0], dim=out, rank=0, flat=False, vector=False, apart=False, width="", loose=True), mixes


def names_around(run: Run, f: ast.AST) -> set[str]:
    """The names that a function reads of what stands around it: of a lambda, or of a function of the step."""
    found: set[str] = set()
    for n in walk(f, ast.Name):
        scope = run.facts.scopes.scope_of(n).lookup(n.id)
        made = scope.stores.get(n.id, []) if scope is not None else []
        own = made[0] if len(made) == 1 and isinstance(made[0], ast.FunctionDef) else None
        found |= _free(own) if own is not None else {n.id}
    return found - _bound(f)


def _free(f: ast.FunctionDef) -> set[str]:
    return {n.id for n in walk(f, ast.Name) if isinstance(n.ctx, ast.Load)} - _bound(f)


def _bound(f: ast.AST) -> set[str]:
    """The parameters and names of a function, and of those in it."""
    given = {n.arg for n in walk(f, ast.arg)}
    return given | {n.id for n in walk(f, ast.Name) if isinstance(n.ctx, ast.Store)}

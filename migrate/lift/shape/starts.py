"""`for step, x in enumerate(loader, epoch * len(loader)):` counts its batches from 0, and adds what it began with.

A Trainer counts the batches of an epoch; where the script's numbers begin is asked once, above the loop, as before.
`for epoch in range(n):` that says `epoch += 1` first thing counts from 1.
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.operands import TERM, closed
from ...facts.script import Facts
from ..loaders import batch_source, is_progress, iterates_loader
from ..recipe import CannotLift
from .edits import Edits
from .free import free
from .loops import epochs_of, step_loop


def add_the_start(facts: Facts) -> str | None:
    """The text with one such loop counting from 0; None where there is none."""
    training = step_loop(facts)
    for loop in facts.walk(ast.For):
        if loop is training or iterates_loader(facts, loop):
            counted = _counted_from(facts, loop)
            if counted is not None:
                return _from_zero(facts, loop, *counted)
    return None


def _counted_from(facts: Facts, loop: ast.For) -> tuple[ast.Call, ast.expr] | None:
    """The call of enumerate, and where it begins: no plain number."""
    try:
        _, _, index, start = batch_source(facts, loop)
    except CannotLift:
        return None
    if index is None or start is None or isinstance(start, ast.Constant):
        return None
    return next(n for n in walk(loop.iter, ast.Call) if start in (*n.args, *_values(n))), start


def _values(call: ast.Call) -> list[ast.expr]:
    return [k.value for k in call.keywords]


def _from_zero(facts: Facts, loop: ast.For, call: ast.Call, start: ast.expr) -> str | None:
    first = facts.text.line_of(facts.text.span(loop.body[0])[0])
    if first == loop.lineno or facts.text.margin(loop).strip():
        return None
    index = loop.target.elts[0]  # type: ignore[attr-defined]
    scope = facts.scopes.scope_of(loop)
    taken = {*scope.stores, *scope.params, *scope.loads}
    begins, counts = free(f"first_{index.id}", taken), free("batch_idx", taken)
    edits = Edits(facts)
    above = f"{facts.text.margin(loop)}{begins} = {' '.join(facts.text.get(start).split())}"
    edits.replace_lines(loop.lineno, loop.lineno - 1, [above])
    edits.replace_node(index, counts)
    edits.replace_node(call, f"enumerate({facts.text.get(call.args[0])})")
    edits.replace_lines(first, first - 1, [f"{facts.text.margin(loop.body[0])}{index.id} = {begins} + {counts}"])
    return edits.done()


def count_from_there(facts: Facts) -> str | None:
    """`for epoch in range(a, b):` with `epoch += 1` first in it, as `range(a + 1, b + 1)`; None where it is another."""
    batches = step_loop(facts)
    loop = epochs_of(facts, batches) if isinstance(batches, ast.For) else None
    added = loop.body[0] if isinstance(loop, ast.For) else None
    if not (isinstance(loop, ast.For) and isinstance(added, ast.AugAssign) and isinstance(added.op, ast.Add)):
        return None
    counted = loop.iter.args[0] if isinstance(loop.iter, ast.Call) and is_progress(facts, loop.iter) else loop.iter
    ranged = isinstance(counted, ast.Call) and facts.text.get(counted.func) == "range" and not counted.keywords
    bounds = counted.args if isinstance(counted, ast.Call) and ranged else []
    alone = len(loop.body) > 1 and loop.lineno < added.lineno == (added.end_lineno or 0) < loop.body[1].lineno
    same = facts.text.get(added.target) == facts.text.get(loop.target) and isinstance(loop.target, ast.Name)
    if not (alone and same and 1 <= len(bounds) <= 2 and type(getattr(added.value, "value", None)) is int):
        return None
    edits = Edits(facts)
    edits.replace_lines(added.lineno, added.lineno, [])
    more = added.value.value  # type: ignore[attr-defined]
    first = [] if len(bounds) == 2 else [str(more)]
    edits.replace_node(counted, f"range({', '.join([*first, *(_sum(facts, b, more) for b in bounds)])})")
    return edits.done()


def _sum(facts: Facts, bound: ast.expr, more: int) -> str:
    if isinstance(bound, ast.Constant) and isinstance(bound.value, int):
        return str(bound.value + more)
    return f"{closed(facts.text.get(bound), TERM)} + {more}"

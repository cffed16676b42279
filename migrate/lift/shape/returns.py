"""A `return` out of the loop over epochs becomes a `break`, and the `return` stands below the loop.

Out of the batch loop it takes two, and a name that tells the outer loop of it: `stopped`. So it does where the function
goes on below the loop.
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts
from ..nodes import walk_here
from .calls import enclosing_function
from .edits import Edits
from .free import free_at
from .loops import epochs_of, nearest_loop, step_loop

PLAIN = ast.Return | ast.Name | ast.Attribute | ast.Constant | ast.Tuple | ast.expr_context


def return_below(facts: Facts) -> str | None:
    """The text with the returns of the loop below it; None where there are none, or where one cannot wait."""
    batches = step_loop(facts)
    epochs = epochs_of(facts, batches) if isinstance(batches, ast.For) else None
    f = enclosing_function(facts, epochs) if epochs is not None else None
    if not isinstance(epochs, (ast.For, ast.While)) or f is None or epochs not in f.body or epochs.orelse:
        return None
    returns = [n for n in walk_here(epochs) if isinstance(n, ast.Return)]
    says = {_source(facts, n) for n in returns}
    if len(says) != 1 or not all(_may_wait(facts, n, epochs, batches) for n in returns):
        return None
    inner = [n for n in returns if nearest_loop(facts, n) is batches]
    if inner and (batches not in epochs.body or batches.orelse):
        return None
    below = f.body[f.body.index(epochs) + 1 :]
    ends = [_source(facts, s) if isinstance(s, ast.Return) else "" for s in below[:1]] or ["return"]
    edits, unit, name = Edits(facts), facts.indentation, None
    if inner or ends != list(says):
        name = free_at(facts, epochs, "stopped")
        _insert(facts, edits, epochs, epochs.lineno, [f"{name} = False"])
    for n in returns:
        margin = facts.text.margin(n)
        edits.replace_node(n, f"{name} = True{facts.text.newline}{margin}break" if name else "break")
    if inner:
        assert isinstance(batches, ast.For)
        _insert(facts, edits, batches, (batches.end_lineno or 0) + 1, [f"if {name}:", f"{unit}break"])
    if ends != list(says):
        _insert(facts, edits, epochs, (epochs.end_lineno or 0) + 1, [f"if {name}:", f"{unit}{says.pop()}"])
    return edits.done()


def _source(facts: Facts, s: ast.Return) -> str:
    bare = s.value is None or (isinstance(s.value, ast.Constant) and s.value.value is None)
    return "return" if bare else facts.text.get(s)


def _may_wait(facts: Facts, n: ast.Return, epochs: ast.AST, batches: ast.AST | None) -> bool:
    """Whether it stands on a line of its own, in one of the two loops themselves, and gives what lasts."""
    plain = all(isinstance(part, PLAIN) for part in walk(n))
    return plain and not facts.text.margin(n).strip() and nearest_loop(facts, n) in (epochs, batches)


def _insert(facts: Facts, edits: Edits, beside: ast.stmt, line: int, lines: list[str]) -> None:
    edits.replace_lines(line, line - 1, [facts.text.margin(beside) + text for text in lines])

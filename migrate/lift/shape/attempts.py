"""A `try` around a pass over the data that only closes something, and goes on raising, is opened.

    try:                                  for x, y in bar:
        for x, y in bar:                      ...
            ...
    except KeyboardInterrupt:
        bar.close()
        raise

What it closes is closed when the process ends.
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts
from ..splice import Splice, indent
from .contexts import holds_a_pass, is_left
from .edits import Edits, block_lines
from .loops import step_loop


def open_attempts(facts: Facts) -> str | None:
    """The text with one such `try` opened; None where there is none."""
    loop = step_loop(facts) if "try:" in facts.text.text else None
    if loop is None:
        return None
    for s in facts.walk(ast.Try):
        if _only_closes(s) and holds_a_pass(facts, s, loop) and _may_be_open(facts, s):
            edits = Edits(facts)
            lines = [*block_lines(facts, s.body, {}), *block_lines(facts, s.finalbody, {})]
            first = facts.text.line_of(facts.text.span(s)[0])
            edits.replace_lines(first, s.end_lineno or first, indent(lines, facts.text.margin(s)))
            return edits.done()
    return None


def _may_be_open(facts: Facts, s: ast.Try) -> bool:
    """Whether its end comes below what it tries in any case."""
    left = bool(s.finalbody) and (isinstance(s.body[-1], ast.Return) or is_left(facts, s))
    return not (left or s.orelse or Splice(facts.text).shares_a_line(s))


def _only_closes(s: ast.Try) -> bool:
    """Whether its handlers close something and raise again, and its end closes."""
    raises = all(isinstance(h.body[-1], ast.Raise) and h.body[-1].exc is None for h in s.handlers)
    return raises and all(map(_closes, [n for h in s.handlers for n in h.body[:-1]] + s.finalbody))


def _closes(s: ast.stmt) -> bool:
    """`bar.close()`"""
    call = s.value if isinstance(s, ast.Expr) else None
    plain = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "close"
    return plain and len(walk(s, ast.Call)) == 1

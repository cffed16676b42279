"""`hits, total = 0, 0` among the steps is two statements: the lift looks at each sum by itself, and where it begins."""

from __future__ import annotations

import ast

from ...facts.script import Facts
from ..backwards import training_backwards
from ..splice import Splice
from .edits import Edits


def begin_apart(facts: Facts) -> str | None:
    """The text with the numbers that steps begin anew with in lines of their own; None where there are none."""
    edits = Edits(facts)
    loops = {_loop(facts, call) for call in training_backwards(facts)}
    for s in facts.walk(ast.Assign):
        pairs = _numbers(s)
        if not pairs or _loop(facts, s) not in loops or Splice(facts.text).shares_a_line(s):
            continue
        lines = [f"{facts.text.get(name)} = {facts.text.get(value)}" for name, value in pairs]
        edits.replace_node(s, f"{facts.text.newline}{facts.text.margin(s)}".join(lines))
    return edits.done() if edits.spans else None


def _loop(facts: Facts, node: ast.AST) -> ast.AST:
    """The innermost loop around a node; the node itself where there is none."""
    return next((up for up in facts.scopes.ancestors(node) if isinstance(up, (ast.For, ast.While))), node)


def _numbers(s: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """The names and numbers of `a, b = 0, 0.0`."""
    target, value = s.targets[0], s.value
    if len(s.targets) > 1 or not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)):
        return []
    plain = all(isinstance(t, ast.Name) for t in target.elts) and len(target.elts) == len(value.elts)
    numbers = all(isinstance(v, ast.Constant) and type(v.value) in (int, float) for v in value.elts)
    return list(zip(target.elts, value.elts, strict=True)) if plain and numbers else []

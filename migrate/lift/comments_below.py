"""Comments below what is dissolved, which no statement has for its own: they go to the hook that comes after it.

for x, y in loader:
    ...
# gradients are kept until here

print(epoch, total)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.script import Facts
from .recipe import DataPass
from .splice import Splice


def comments_below(facts: Facts, splice: Splice, s: ast.stmt) -> list[str]:
    """The comments right below a statement, or that end its block; none that stand further in."""
    if "#" not in facts.text.text:
        return []
    _, last = splice.with_comments(s)
    margin, end = len(facts.text.margin(s)), s.end_lineno or s.lineno
    texts = [facts.text.lines[n - 1] for n in range(end + 1, max(last, splice.to_the_end(s)) + 1)]
    return [t.strip() for t in texts if t.lstrip().startswith("#") and len(t) - len(t.lstrip()) == margin]


def below_pass(facts: Facts, splice: Splice, p: DataPass) -> list[str]:
    """Those below a pass's loop, what stands around it, and the call of its function."""
    return [text for s in _dissolved(facts, p) for text in comments_below(facts, splice, s)]


def above_return(facts: Facts, splice: Splice, value: ast.expr) -> list[str]:
    """Those above the statement that returns a pass's value, which an assignment of that value stands for."""
    s = facts.scopes.statement_of(value)
    first, _ = splice.with_comments(s, splice.floor(s))
    texts = [facts.text.lines[n - 1].strip() for n in range(first, s.lineno)]
    return [t for t in texts if t.startswith("#")]


def _dissolved(facts: Facts, p: DataPass) -> Iterator[ast.stmt]:
    yield p.loop
    for up in facts.scopes.ancestors(p.loop):
        if not isinstance(up, ast.With):
            break
        yield up
    if p.call is not None:
        yield facts.scopes.statement_of(p.call)

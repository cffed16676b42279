"""`if stalled: break` at the top of an epoch is asked at the end of the epoch before, and once before the first.

What is asked has to be plain: names, attributes and comparisons, none of them the epoch's own number.
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts
from ..nodes import walk_here
from ..splice import indent
from .edits import Edits, block_lines
from .loops import epochs_of, nearest_loop, step_loop

PLAIN = (
    ast.Name | ast.Attribute | ast.Constant | ast.Compare | ast.BoolOp | ast.UnaryOp | ast.BinOp | ast.expr_context
    | ast.cmpop | ast.boolop | ast.unaryop | ast.operator
)  # fmt: skip


def stop_before(facts: Facts) -> str | None:
    """The text with one such loop asking at its end; None where there is none."""
    batches = step_loop(facts)
    loop = epochs_of(facts, batches) if isinstance(batches, ast.For) else None
    if not isinstance(loop, ast.For) or loop.orelse or facts.text.margin(loop).strip():
        return None
    test = _asked_first(loop)
    if test is None or len(loop.body) < 2 or not _may_wait(facts, loop, test):
        return None
    unit, asked = facts.indentation, facts.text.get(test)
    if "\n" in asked or facts.text.line_of(facts.text.span(loop.iter)[1]) != loop.lineno:
        return None
    asking, body = block_lines(facts, loop.body[:1], {}), block_lines(facts, loop.body[1:], {})
    if facts.text.line_of(facts.text.span(loop.body[0])[0]) == loop.lineno:
        return None
    if _changes(facts, loop, test):
        body, said = [*body, *asking], []
    else:
        said = [line[line.index("#") :] for line in asking if "#" in line]
    counted = f"for {facts.text.get(loop.target)} in {facts.text.get(loop.iter)}:"
    lines = [*said, f"if not ({asked}):", *indent([counted, *indent(body, unit)], unit)]
    edits = Edits(facts)
    edits.replace_lines(loop.lineno, loop.end_lineno or loop.lineno, indent(lines, facts.text.margin(loop)))
    return edits.done()


def _asked_first(loop: ast.For) -> ast.expr | None:
    """The test of `if test: break` where the loop's body begins with it."""
    s = loop.body[0]
    plain = isinstance(s, ast.If) and not s.orelse and len(s.body) == 1 and isinstance(s.body[0], ast.Break)
    return s.test if plain and all(isinstance(n, PLAIN) for n in walk(s.test)) else None  # type: ignore[attr-defined]


def _may_wait(facts: Facts, loop: ast.For, test: ast.expr) -> bool:
    """Whether nothing tells an epoch that was not begun from one that was: its number is read in its rounds alone."""
    own = {n.id for n in walk(loop.target, ast.Name)}
    if own & {n.id for n in walk(test, ast.Name)}:
        return False
    if any(isinstance(n, ast.Continue) and nearest_loop(facts, n) is loop for n in walk_here(loop)):
        return False
    scope = facts.scopes.scope_of(loop)
    inside = set(walk(loop))
    homes = [(name, scope.lookup(name)) for name in own]
    return all(home is not None and inside.issuperset(facts.scopes.reads(name, home)) for name, home in homes)


def _changes(facts: Facts, loop: ast.For, test: ast.expr) -> bool:
    """Whether what is asked can have another answer after a round."""
    attributes = {n.attr for n in walk(test, ast.Attribute)}
    if any(not isinstance(n.ctx, ast.Load) for name in attributes for n in facts.attributes.get(name, ())):
        return True
    for n in walk(test, ast.Name):
        home = facts.scopes.scope_of(n).lookup(n.id)
        stores = home.stores.get(n.id, ()) if home is not None else ()
        if any(facts.scopes.statement_of(s).lineno > loop.lineno for s in stores):  # below it, or in a function
            return True
        if any(home is not facts.scopes.scope_of(facts.scopes.statement_of(s)) for s in stores):
            return True
    return False

"""`if stalled: break` at the top of an epoch is asked at the end of the epoch before, and once before the first.

What is asked has to be plain: names, attributes and comparisons, none of them the epoch's own number. Where it is told,
`print("early stop")`, the last epoch does not ask.
"""

from __future__ import annotations

import ast
from itertools import takewhile

from ...facts.nodes import walk
from ...facts.operands import BIT_OR, closed
from ...facts.script import Facts
from ..nodes import walk_here
from ..splice import indent
from .bars import is_steady
from .edits import Edits, block_lines
from .loops import epochs_of, nearest_loop, step_loop
from .ranges import is_builtin

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
    asks = _asked_first(loop)
    if asks is None or len(loop.body) < 2 or not _may_wait(facts, loop, asks.test):
        return None
    asked, more = facts.text.get(asks.test), _goes_on(facts, loop)
    if "\n" in asked or facts.text.line_of(facts.text.span(loop.iter)[1]) != loop.lineno:
        return None
    if facts.text.line_of(facts.text.span(asks)[0]) == loop.lineno or (len(asks.body) > 1 and more is None):
        return None
    lines = _told(facts, loop, asks, more) if len(asks.body) > 1 else _untold(facts, loop, asks)
    edits = Edits(facts)
    edits.replace_lines(loop.lineno, loop.end_lineno or loop.lineno, indent(lines, facts.text.margin(loop)))
    return edits.done()


def _untold(facts: Facts, loop: ast.For, asks: ast.If) -> list[str]:
    """Where nothing is said of the end, the last epoch may ask, too."""
    unit, asked = facts.indentation, facts.text.get(asks.test)
    asking, body = block_lines(facts, loop.body[:1], {}), block_lines(facts, loop.body[1:], {})
    if _changes(facts, loop, asks.test):
        body, said = [*body, *asking], []
    else:
        said = [line[line.index("#") :] for line in asking if "#" in line]
    return [*said, f"if not ({asked}):", *indent([_head(facts, loop), *indent(body, unit)], unit)]


def _told(facts: Facts, loop: ast.For, asks: ast.If, more: str | None) -> list[str]:
    """Where something is, none but an epoch that another follows asks."""
    unit, asked = facts.indentation, facts.text.get(asks.test)
    said = list(takewhile(lambda line: line.startswith("#"), block_lines(facts, [asks], {})))
    body = block_lines(facts, loop.body[1:], {})
    if _changes(facts, loop, asks.test):
        body += [*said, f"if {more} and ({asked}):", *indent(block_lines(facts, asks.body, {}), unit)]
    first = [f"if {asked}:", *indent(block_lines(facts, asks.body[:-1], {}), unit)]
    return [*said, *first, "else:", *indent([_head(facts, loop), *indent(body, unit)], unit)]


def _head(facts: Facts, loop: ast.For) -> str:
    return f"for {facts.text.get(loop.target)} in {facts.text.get(loop.iter)}:"


def _goes_on(facts: Facts, loop: ast.For) -> str | None:
    """The source that asks in an epoch whether another follows."""
    counted = loop.iter
    if not (
        isinstance(counted, ast.Call) and is_builtin(facts, counted, "range") and isinstance(loop.target, ast.Name)
    ):
        return None
    if counted.keywords or not 1 <= len(counted.args) <= 2 or not is_steady(facts, counted.args):
        return None
    return f"{loop.target.id} + 1 < {closed(facts.text.get(counted.args[-1]), BIT_OR)}"


def _asked_first(loop: ast.For) -> ast.If | None:
    """`if test: break` where the loop's body begins with it; it may be told before."""
    s = loop.body[0]
    if not isinstance(s, ast.If) or s.orelse or not isinstance(s.body[-1], ast.Break):
        return None
    tells = all(isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) for n in s.body[:-1])
    return s if tells and all(isinstance(n, PLAIN) for n in walk(s.test)) else None


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

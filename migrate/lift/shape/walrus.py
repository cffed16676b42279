"""`(loss := criterion(x, y)).backward()` gets a line of its own for what it names: `loss = criterion(x, y)`."""

from __future__ import annotations

import ast

from ...facts.script import Facts
from .edits import Edits
from .hoist import comes_first

PARENTHESISED = ast.Attribute | ast.Subscript | ast.BinOp | ast.Compare


def name_before(facts: Facts) -> str | None:
    """The text with one walrus of a loop's statement taken out; None where there is none."""
    for named in facts.walk(ast.NamedExpr):
        statement = facts.scopes.statement_of(named)
        looped = any(isinstance(up, (ast.For, ast.While)) for up in facts.scopes.ancestors(statement))
        if not looped or not comes_first(facts, statement, named):
            continue
        name = named.target.id
        start, stop = facts.text.span(named)
        if isinstance(facts.scopes.parents.get(named), PARENTHESISED):
            start, stop = _around(facts.text.text, start, stop)
        edits = Edits(facts)
        line = facts.text.line_of(facts.text.span(statement)[0])
        given = facts.text.get(named.value)
        given = f"({given})" if "\n" in given else given
        edits.replace_lines(line, line - 1, [f"{facts.text.margin(statement)}{name} = {given}"])
        edits.replace(start, stop, name)
        return edits.done()
    return None


def _around(text: str, start: int, stop: int) -> tuple[int, int]:
    """The span with one pair of parentheses, where they stand close."""
    if text[start - 1 : start] == "(" and text[stop : stop + 1] == ")":
        return start - 1, stop + 1
    return start, stop

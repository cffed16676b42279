"""A progress bar that has a name: the loop goes over what is under the bar, and the bar is moved by hand.

`with tqdm(loader) as bar: for batch in bar:` becomes `bar = tqdm(loader)`, a loop over `loader` and `bar.close()`.
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts
from ..loaders import is_progress, values_of
from ..nodes import walk_here
from ..splice import indent
from .edits import Edits, block_lines


def open_bars(facts: Facts) -> str | None:
    """The text with one progress bar taken apart; None where there is none."""
    for statement in facts.walk(ast.With):
        made, name = statement.items[0].context_expr, statement.items[0].optional_vars
        if len(statement.items) > 1 or not (isinstance(made, ast.Call) and is_progress(facts, made)):
            continue
        if isinstance(name, ast.Name) and any(isinstance(n, ast.For) for n in walk_here(statement)):
            return _without_with(facts, statement, made, name.id)
    for loop in facts.walk(ast.For):
        found = _named_bar(facts, loop)
        if found is not None:
            return found
    return None


def _without_with(facts: Facts, s: ast.With, made: ast.Call, name: str) -> str:
    edits = Edits(facts)
    lines = [f"{name} = {facts.text.get(made)}", *block_lines(facts, s.body, {}), f"{name}.close()"]
    first = facts.text.line_of(facts.text.span(s)[0])
    edits.replace_lines(first, s.end_lineno or first, indent(lines, facts.text.margin(s)))
    return edits.done()


def _named_bar(facts: Facts, loop: ast.For) -> str | None:
    """`for x in bar:`, or over enumerate(bar), where `bar = tqdm(loader)`."""
    at = loop.iter
    if isinstance(at, ast.Call) and isinstance(at.func, ast.Name) and at.func.id == "enumerate" and at.args:
        at = at.args[0]
    if not isinstance(at, ast.Name):
        return None
    scope = facts.scopes.scope_of(at).lookup(at.id)
    values = values_of(facts, at.id, scope) if scope is not None and at.id not in scope.params else []
    made = values[0] if len(values) == 1 else None
    if not (isinstance(made, ast.Call) and is_progress(facts, made) and made.args):
        return None
    under = made.args[0]
    if not isinstance(under, ast.Name | ast.Attribute) or any(isinstance(n, ast.Continue) for n in walk(loop)):
        return None
    edits = Edits(facts)
    edits.replace_node(at, facts.text.get(under))
    last = loop.body[-1].end_lineno or loop.lineno
    edits.replace_lines(last + 1, last, [f"{facts.text.margin(loop.body[0])}{at.id}.update()"])
    return edits.done()

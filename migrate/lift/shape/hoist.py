"""A pass over the data whose value is used in an expression gets a line of its own.

`losses.append(train(model, loader))` becomes `train_result = train(model, loader)` and `losses.append(train_result)`.
"""

from __future__ import annotations

import ast
import re
from itertools import takewhile

from ...facts.nodes import walk
from ...facts.script import Facts
from ..nodes import OWN_SCOPE
from ..splice import Splice
from .calls import only_call
from .edits import Edits
from .free import free

# below these a call is made later, more than once, or not at all
TWICE = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SOMETIMES = (*TWICE, ast.JoinedStr)  # and what stands in an f-string has no place of its own before Python 3.12


def hoist_passes(facts: Facts) -> str | None:
    """The text with one call taken out of its expression; None where there is none."""
    passes = passes_of(facts)
    for f in facts.walk(ast.FunctionDef):
        if f not in passes:
            continue
        call = only_call(facts, f)
        if call is None:
            continue
        statement = facts.scopes.statement_of(call)
        place = _place(facts, statement, call)
        if place is None or _stands_plainly(statement, call):
            continue
        name = _free(facts, f"{f.name.strip('_')}_result")
        edits = Edits(facts)
        line, made = facts.text.line_of(facts.text.span(statement)[0]), facts.text.text[slice(*place)]
        edits.replace_lines(line, line - 1, [f"{facts.text.margin(statement)}{name} = {made}"])
        edits.replace(*place, name)
        return edits.done()
    return None


def _place(facts: Facts, statement: ast.stmt, call: ast.Call) -> tuple[int, int] | None:
    """Where a call stands, if it comes first in its statement."""
    if facts.in_formatted_string(call):
        return _in_a_string(facts, statement, call)
    return facts.text.span(call) if comes_first(facts, statement, call) else None


def _in_a_string(facts: Facts, statement: ast.stmt, call: ast.Call) -> tuple[int, int] | None:
    """The same for `print(f"{epoch}: {test(model):.3f}")`, where nothing else is called: found by what is written."""
    around = list(takewhile(lambda up: up is not statement, facts.scopes.ancestors(call)))
    strings = [up for up in around if isinstance(up, ast.JoinedStr)]
    others = [n for n in walk(statement, ast.Call) if n is not call and n not in around and n not in walk(call)]
    if not isinstance(statement, (ast.Expr, ast.Assign)) or Splice(facts.text).shares_a_line(statement):
        return None
    if any(isinstance(up, TWICE) for up in around) or others:
        return None
    start, stop = facts.text.span(strings[-1])
    text, wanted = facts.text.text[start:stop], ast.dump(call)
    opens = [m.start() for m in re.finditer(rf"(?<![\w.]){re.escape(ast.unparse(call.func))}\(", text)]
    ends = [m.end() for m in re.finditer(r"\)", text)]
    found = [(a, b) for a in opens for b in ends if b > a and "\n" not in text[a:b] and _is(text[a:b], wanted)]
    if len(opens) != 1 or len(found) != 1 or text[found[0][1] :].lstrip().startswith("="):
        return None  # `{test(model)=}` prints what is called, too
    return start + found[0][0], start + found[0][1]


def _is(text: str, wanted: str) -> bool:
    try:
        return ast.dump(ast.parse(text, mode="eval").body) == wanted
    except (SyntaxError, ValueError):
        return False


def passes_of(facts: Facts) -> set[ast.AST]:
    """The functions that make a training step, or pass over data in a loop that calls a model without gradients."""
    calls = facts.walk(ast.Call)
    trains = [n for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == "backward"]
    around = (facts.scopes.ancestors(n) for n in (*trains, *facts.loops.hot_loops))
    return {next((up for up in ups if up.__class__ in OWN_SCOPE), facts.tree) for ups in around}


def _stands_plainly(statement: ast.stmt, call: ast.Call) -> bool:
    if isinstance(statement, ast.Expr):
        return statement.value is call
    if isinstance(statement, ast.Assign) and statement.value is call and len(statement.targets) == 1:
        target = statement.targets[0]
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        return all(isinstance(t, ast.Name) for t in parts)
    return False


def comes_first(facts: Facts, statement: ast.stmt, call: ast.expr) -> bool:
    """Whether nothing that could matter is evaluated before an expression, and it is evaluated once in any case."""
    if not isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If)):
        return False
    line_start, _ = facts.text.line_span(statement.lineno, statement.lineno)
    first = facts.text.text[facts.text.span(statement)[0] :]
    if facts.text.text[line_start : facts.text.span(statement)[0]].strip() or first.startswith("elif"):
        return False
    whole = statement.test if isinstance(statement, ast.If) else statement
    for up in facts.scopes.ancestors(call):
        if up is statement:
            break
        if isinstance(up, SOMETIMES) or (isinstance(up, ast.Compare) and len(up.ops) > 1):
            return False
    start = facts.text.span(call)[0]
    inside = set(walk(call))
    around = set(facts.scopes.ancestors(call))
    return not any(
        isinstance(n, (ast.Call, ast.NamedExpr, ast.Await, ast.Yield))
        and n not in inside
        and n not in around
        and facts.text.span(n)[0] < start
        for n in walk(whole)
    )


def _free(facts: Facts, name: str) -> str:
    return free(name, {n for s in facts.scopes.by_node.values() for n in (*s.stores, *s.params, *s.loads)})

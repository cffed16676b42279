"""A pass over the data whose value is used in an expression gets a line of its own.

`losses.append(train(model, loader))` becomes `train_result = train(model, loader)` and `losses.append(train_result)`.
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts
from ..nodes import OWN_SCOPE
from .calls import only_call
from .edits import Edits
from .free import free

# below these a call is made later, more than once, or not at all
SOMETIMES = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
             ast.JoinedStr)  # fmt: skip


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
        if _stands_plainly(statement, call) or not comes_first(facts, statement, call):
            continue
        name = _free(facts, f"{f.name.strip('_')}_result")
        edits = Edits(facts)
        line = facts.text.line_of(facts.text.span(statement)[0])
        edits.replace_lines(line, line - 1, [f"{facts.text.margin(statement)}{name} = {facts.text.get(call)}"])
        edits.replace_node(call, name)
        return edits.done()
    return None


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

"""Where statements were: gaps that their block closes, with the comments that stood there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from ..facts.operands import joined, negated


class Gone(cst.Pass):
    """Stands where a statement was, until its block closes over the gap."""


class Empty(cst.Pass):
    """Stands in a block that has nothing left."""


def end_of(block: Any) -> list[cst.BaseStatement]:
    """What stands for the comments at the end of a block that is taken apart: they go to what comes after it."""
    footer = getattr(block, "footer", ())
    last = next((i for i in range(len(footer), 0, -1) if footer[i - 1].comment is not None), 0)
    return [cst.SimpleStatementLine([Gone()], leading_lines=footer[:last])] if last else []


def close_gaps(body: Sequence[Any], footer: Sequence[cst.EmptyLine]) -> tuple[Sequence[Any], Sequence[cst.EmptyLine]]:
    """Take the marked statements out; comments above one go to the statement after it."""
    if not any(_is_gone(s) for s in body):
        return body, footer
    kept: list[Any] = []
    carried: list[cst.EmptyLine] = []
    for statement in body:
        if _is_gone(statement):
            carried = _join(carried, statement.leading_lines) if carried else [*statement.leading_lines]
        elif carried:
            kept.append(statement.with_changes(leading_lines=_join(carried, statement.leading_lines)))
            carried = []
        else:
            kept.append(statement)
    return kept, _join(carried, footer) if carried else footer


def is_empty(branch: Any) -> bool:
    """An else that has nothing left, or an elif that only looks at names."""
    if isinstance(branch, cst.If) and (branch.orelse is not None or not _only_looks(branch.test)):
        return False
    body = branch.body.body if isinstance(branch, (cst.If, cst.Else)) else ()
    return len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine) and isinstance(body[0].body[0], Empty)


def turned(branch: cst.If) -> cst.If:
    """`if a: pass` above an else, or an elif alone, of which the edits have taken the body: `if not a`.

    Where comments stand between the two it stays.
    """
    other = branch.orelse
    if other is None or not _has_nothing(branch.body) or any(line.comment for line in other.leading_lines):
        return branch
    code = cst.Module([]).code_for_node
    test = negated(code(branch.test))
    if isinstance(other, cst.If):
        if other.orelse is not None:
            return branch
        test = joined([test, code(other.test)], "and")
    if "\n" in test:
        return branch
    space = cst.SimpleWhitespace(" ")
    new = cst.parse_expression(test)
    return branch.with_changes(test=new, body=other.body, orelse=None, whitespace_before_test=space)


def _has_nothing(body: Any) -> bool:
    """Whether a block had statements, and has neither those nor comments any more."""
    if not isinstance(body, cst.IndentedBlock) or len(body.body) != 1 or body.header.comment is not None:
        return False
    line = body.body[0]
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(line.body[0], Empty):
        return False
    return not any(e.comment for e in (*line.leading_lines, *body.footer))


def _only_looks(test: Any) -> bool:
    """Whether a condition has no effect: names, comparisons of them, `torch.cuda.is_available()`, `a.startswith(b)`."""
    if isinstance(test, cst.Comparison):
        return all(_only_looks(part) for part in (test.left, *(c.comparator for c in test.comparisons)))
    if isinstance(test, cst.BooleanOperation):
        return _only_looks(test.left) and _only_looks(test.right)
    if isinstance(test, cst.Call) and isinstance(test.func, cst.Attribute):
        given = [a.value for a in test.args]
        if test.func.attr.value in ("startswith", "endswith"):
            return all(_only_looks(part) for part in (test.func, *given))
        return test.func.attr.value in ("is_available", "device_count") and not given and _only_looks(test.func)
    if isinstance(test, cst.UnaryOperation):
        return _only_looks(test.expression)
    while isinstance(test, cst.Attribute):
        test = test.value
    return isinstance(test, (cst.Name, cst.Integer, cst.SimpleString))


def _is_gone(statement: Any) -> bool:
    if isinstance(statement, cst.If):
        return statement.orelse is None and _only_looks(statement.test) and is_empty(statement)
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], Gone)


def _join(above: Sequence[cst.EmptyLine], below: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """Both, with no more blank lines where they meet than one of them had."""
    ends = next((i for i, line in enumerate(reversed(above)) if line.comment is not None), len(above))
    starts = next((i for i, line in enumerate(below) if line.comment is not None), len(below))
    return [*above[: len(above) - min(ends, starts)], *below]

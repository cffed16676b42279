"""The one libcst pass: finds planned nodes by kind and position, and takes statements out with their comments kept."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import libcst as cst

from ._positions import Range, positions_of
from .base import Change, Key, NotFound
from .rewrites import DropArgument

SMALL = (cst.BaseSmallStatement,)
COMPOUND = (cst.BaseCompoundStatement,)
PLANNED_IN = (cst.BaseStatement, cst.BaseExpression)
BRANCHING = (cst.If, cst.For, cst.While, cst.Try)
INERT = frozenset(  # libcst would build each of them anew: half of all the nodes that it meets
    getattr(cst, name)
    for name in "SimpleWhitespace ParenthesizedWhitespace TrailingWhitespace EmptyLine Newline Comma Dot Colon "
    "AssignEqual Semicolon LeftParen RightParen LeftSquareBracket RightSquareBracket".split()
)


class _Gone(cst.Pass):
    """Stands where a statement was, until its block closes over the gap."""


class _Empty(cst.Pass):
    """Stands in a block that has nothing left."""


class Under(cst.Pass):
    """Stands where a small statement was that gets a condition around it, until its line is closed."""

    test: cst.BaseExpression
    statement: cst.BaseSmallStatement
    unit: str

    def __init__(self, test: cst.BaseExpression, statement: cst.BaseSmallStatement, unit: str) -> None:
        super().__init__()
        for name, value in (("test", test), ("statement", statement), ("unit", unit)):
            object.__setattr__(self, name, value)


def in_order(changes: list[Change]) -> list[Change]:
    """The changes of one node; its arguments go last, from the last one on: places are those of the original."""
    places = [c.rewrite.place if isinstance(c.rewrite, DropArgument) else None for c in changes]
    if len(changes) == 1 or all(place is None for place in places):
        return changes
    order = sorted(range(len(changes)), key=lambda i: (places[i] is not None, -(places[i] or 0)))
    return [changes[i] for i in order]


def rewritten(text: str, wanted: Mapping[Key, list[Change]]) -> str:
    """The text with its planned nodes rewritten; NotFound where it has no such nodes."""
    module = cst.parse_module(text)
    carried = Pass(wanted, positions_of(module))
    new = module.visit(carried).code
    missing = [wanted[key][0].edit for key in wanted if key not in carried.found]
    if missing:
        raise NotFound(missing)
    return new


class Pass(cst.CSTTransformer):
    def __init__(self, wanted: Mapping[Key, list[Change]], positions: Mapping[cst.CSTNode, Range]) -> None:
        super().__init__()
        self.wanted = wanted
        self.kinds = {k[0] for k in wanted}
        self.positions = positions
        self.found: set[Key] = set()
        self.own: dict[type, Any] = {
            cst.SimpleStatementLine: self.leave_SimpleStatementLine,
            cst.IndentedBlock: self.leave_IndentedBlock,
            cst.Module: self.leave_Module,
        }
        self.starts = sorted(k[1:3] for k in wanted)

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Statements and expressions in which nothing is planned are not entered, nor what stands between them."""
        if not isinstance(node, PLANNED_IN):
            return type(node) not in INERT
        line, column, *end = self.positions[node]
        if decorators := getattr(node, "decorators", ()):
            line, column = self.positions[decorators[0]][:2]
        at = bisect_left(self.starts, (line, column))
        return at < len(self.starts) and self.starts[at] < tuple(end)

    def on_leave(self, original: cst.CSTNode, updated: Any) -> Any:
        if type(original) in INERT:
            return updated
        of_its_own = self.own.get(type(original))
        if of_its_own is not None:
            updated = of_its_own(original, updated)
        if isinstance(updated, BRANCHING) and _is_empty(updated.orelse):
            updated = updated.with_changes(orelse=None)
        kind = "statement" if isinstance(original, SMALL) else type(original).__name__
        if kind in self.kinds:
            where = self.positions[original]
            key = (kind, *where)
            if key in self.wanted:
                self.found.add(key)
            for change in self.wanted.get(key, ()):
                updated = change.rewrite(original, updated) if change.rewrite else None
                if updated is None:
                    return self._gone(original)
        return updated

    def _gone(self, original: cst.CSTNode) -> cst.CSTNode:
        if isinstance(original, COMPOUND):
            lines = getattr(original, "leading_lines", ())
            return cst.SimpleStatementLine([_Gone()], leading_lines=lines)
        return _Gone()

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.BaseStatement:
        under: Any = updated.body[0]
        if isinstance(under, Under):
            line = updated.with_changes(body=[under.statement], leading_lines=())
            return cst.If(under.test, cst.IndentedBlock([line], indent=under.unit), leading_lines=updated.leading_lines)
        kept = [s for s in updated.body if not isinstance(s, _Gone)]
        if len(kept) == len(updated.body):
            return updated
        if not kept:
            return updated.with_changes(body=[_Gone()])
        if kept[-1] is not updated.body[-1]:
            kept[-1] = kept[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
        return updated.with_changes(body=kept)

    def leave_IndentedBlock(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock:
        body, footer = _close_gaps(updated.body, updated.footer)
        if body is updated.body:
            return updated
        if not body:
            body = [cst.SimpleStatementLine([_Empty()])]
        return updated.with_changes(body=body, footer=footer)

    def leave_Module(self, original: cst.Module, updated: cst.Module) -> cst.Module:
        body, footer = _close_gaps(updated.body, updated.footer)
        return updated if body is updated.body else updated.with_changes(body=body, footer=footer)


def _close_gaps(body: Sequence[Any], footer: Sequence[cst.EmptyLine]) -> tuple[Sequence[Any], Sequence[cst.EmptyLine]]:
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


def _is_empty(branch: Any) -> bool:
    """An else that has nothing left, or an elif that only looks at names."""
    if isinstance(branch, cst.If) and (branch.orelse is not None or not _only_looks(branch.test)):
        return False
    body = branch.body.body if isinstance(branch, cst.If | cst.Else) else ()
    return len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine) and isinstance(body[0].body[0], _Empty)


def _only_looks(test: Any) -> bool:
    """Whether a condition has no effect: names, comparisons of them, and `torch.cuda.is_available()`."""
    if isinstance(test, cst.Comparison):
        return all(_only_looks(part) for part in (test.left, *(c.comparator for c in test.comparisons)))
    if isinstance(test, cst.BooleanOperation):
        return _only_looks(test.left) and _only_looks(test.right)
    if isinstance(test, cst.Call) and isinstance(test.func, cst.Attribute):
        return test.func.attr.value in ("is_available", "device_count") and not test.args and _only_looks(test.func)
    if isinstance(test, cst.UnaryOperation):
        return _only_looks(test.expression)
    while isinstance(test, cst.Attribute):
        test = test.value
    return isinstance(test, cst.Name | cst.Integer | cst.SimpleString)


def _is_gone(statement: Any) -> bool:
    if isinstance(statement, cst.If):
        return statement.orelse is None and _only_looks(statement.test) and _is_empty(statement)
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], _Gone)


def _join(above: Sequence[cst.EmptyLine], below: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """Both, with no more blank lines where they meet than one of them had."""
    ends = next((i for i, line in enumerate(reversed(above)) if line.comment is not None), len(above))
    starts = next((i for i, line in enumerate(below) if line.comment is not None), len(below))
    return [*above[: len(above) - min(ends, starts)], *below]

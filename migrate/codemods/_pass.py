"""The one libcst pass: finds planned nodes by kind and position, and takes statements out with their comments kept."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple

import libcst as cst

from ..facts.operands import tightness
from ._chains import dot_behind
from ._gaps import Empty, Gone, close_gaps, is_empty, turned
from ._lost_comments import changes_in, with_comments
from ._positions import NEWLINE as LINE_END
from ._positions import Range, positions_of
from ._quotes import with_other_quotes
from ._words import read_them
from ._written import code_of
from .argument_rewrites import DropArgument
from .base import Change, Key, NotFound

read_them()
SMALL = (cst.BaseSmallStatement,)
COMPOUND = (cst.BaseCompoundStatement,)
PLANNED_IN = (cst.BaseStatement, cst.BaseExpression)
BRANCHING = (cst.If, cst.For, cst.While, cst.Try)
# what stands beside an operator, a dot or a bracket there
OPERATING = (cst.Attribute, cst.Call, cst.Subscript, cst.Await, cst.BinaryOperation, cst.BooleanOperation, cst.IfExp,
             cst.UnaryOperation, cst.Comparison, cst.ComparisonTarget, cst.CompFor, cst.CompIf)  # fmt: skip
BESIDE = frozenset("value func left right expression comparator iter test body".split())
LOOSE = (cst.BooleanOperation, cst.BinaryOperation, cst.Comparison, cst.UnaryOperation, cst.IfExp, cst.Lambda,
         cst.NamedExpr, cst.Await, cst.Yield, cst.Tuple)  # fmt: skip
PLAIN = (str, bool, int, cst.MaybeSentinel)
HEADS: dict[type, tuple[str, ...]] = {
    cst.With: ("lpar", "items", "rpar"),
    cst.For: ("target", "iter"),
    cst.While: ("test",),
    cst.If: ("test",),
    cst.FunctionDef: ("params", "returns", "whitespace_before_params"),
    cst.ClassDef: ("lpar", "bases", "keywords", "rpar"),
}
INERT = frozenset(  # fields with nothing to be planned in
    "lpar rpar lbracket rbracket lbrace rbrace comma colon semicolon equal leading_lines lines_after_decorators header "
    "footer first_line operator dot".split()
)


class Kind(NamedTuple):
    """What the pass has to know of a class of libcst's."""

    name: str  # as planned nodes are named
    fields: tuple[str, ...]  # that may hold nodes
    planned_in: bool
    branches: bool


class _Kinds(dict[type, Kind]):
    def __missing__(self, cls: type) -> Kind:
        names = [f.name for f in dataclasses.fields(cls)]
        kind = self[cls] = Kind(
            "statement" if issubclass(cls, SMALL) else cls.__name__,
            tuple(n for n in names if n not in INERT and "whitespace" not in n),
            issubclass(cls, PLANNED_IN),
            issubclass(cls, BRANCHING),
        )
        return kind


KINDS = _Kinds()


class Under(cst.Pass):
    """Stands where a small statement was that gets a condition around it, until its line is closed.

    `opened`: or a `with`, and the name that what it opens has there.
    """

    test: cst.BaseExpression
    statement: cst.BaseSmallStatement
    unit: str
    opened: str

    def __init__(
        self, test: cst.BaseExpression, statement: cst.BaseSmallStatement, unit: str, opened: str = ""
    ) -> None:
        super().__init__()
        for name, value in (("test", test), ("statement", statement), ("unit", unit), ("opened", opened)):
            object.__setattr__(self, name, value)

    def around(self, line: cst.SimpleStatementLine, leading: Sequence[cst.EmptyLine]) -> cst.BaseStatement:
        body = cst.IndentedBlock([line], indent=self.unit)
        if not self.opened:
            return cst.If(self.test, body, leading_lines=leading)
        return cst.With([cst.WithItem(self.test, cst.AsName(cst.Name(self.opened)))], body, leading_lines=leading)


def _parted(
    line: cst.SimpleStatementLine, kept: list[Any]
) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
    """A line of which some statements get a condition around them: each of these on lines of its own."""
    parts: list[list[Any]] = []
    for s in kept:
        if not parts or isinstance(s, Under) or isinstance(parts[-1][0], Under):
            parts.append([])
        parts[-1].append(s)
    found: list[cst.BaseStatement] = []
    for i, part in enumerate(parts):
        own = [s.statement if isinstance(s, Under) else s for s in part]
        under, last = part[0], i == len(parts) - 1
        leading = line.leading_lines if i == 0 else ()
        trailing = line.trailing_whitespace if last else cst.TrailingWhitespace()
        semicolon = own[-1].semicolon
        if not last or isinstance(under, Under):
            own[-1] = own[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            if last and trailing.comment and isinstance(semicolon, cst.Semicolon):
                trailing = trailing.with_changes(whitespace=semicolon.whitespace_after)
        new = cst.SimpleStatementLine(own, () if isinstance(under, Under) else leading, trailing)
        if isinstance(under, Under):
            found.append(under.around(new, leading))
        else:
            found.append(new)
    return found[0] if len(found) == 1 else cst.FlattenSentinel(found)


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
    carried = Pass(wanted, positions_of(module), [n for n, line in enumerate(LINE_END.split(text), 1) if "#" in line])
    new = code_of(carried.over(module))
    missing = [wanted[key][0].edit for key in wanted if key not in carried.found]
    if missing:
        raise NotFound(missing)
    return new


class Pass:
    """Rewrites planned nodes, inner ones first.

    libcst's own visit builds every node anew that it comes through; here a node that has nothing planned in it is kept.
    """

    def __init__(
        self, wanted: Mapping[Key, list[Change]], positions: Mapping[int, Range], commented: Sequence[int]
    ) -> None:
        self.wanted = wanted
        self.commented = commented  # the lines that a comment may stand on, in order
        self.kinds = {k[0] for k in wanted}
        self.positions = positions
        self.found: set[Key] = set()
        self.starts = sorted(k[1:3] for k in wanted)

    def over(self, node: Any) -> Any:
        """What becomes of a node: itself, another one, or one of libcst's sentinels."""
        kind = KINDS[node.__class__]
        if kind.planned_in and not self._is_planned_in(node):
            return node
        changes: dict[str, Any] = {}
        for name in kind.fields:
            before = getattr(node, name)
            if before.__class__ is tuple or before.__class__ is list:
                after: Any = self._parts(before)
            elif before is None or before.__class__ in PLAIN:
                continue
            else:
                after = self.over(before)
                if isinstance(after, cst.FlattenSentinel):
                    raise TypeError(f"{name} of {node.__class__.__name__} is one node")
            if after is not before:
                if isinstance(after, LOOSE) and name in BESIDE and isinstance(node, OPERATING):
                    after = _as_tight(before, after)
                if node.__class__ is cst.Attribute and isinstance(before, cst.Call):
                    changes["dot"] = dot_behind(before, after, node.dot)
                changes[name] = None if isinstance(after, cst.RemovalSentinel) else after
        return self._left(kind, node, node.with_changes(**changes) if changes else node)

    def _parts(self, before: Sequence[Any]) -> Sequence[Any]:
        """What becomes of the nodes in a sequence; the very same where they stay."""
        after: list[Any] = []
        for node in before:
            part = self.over(node)
            if isinstance(part, cst.FlattenSentinel):
                after += part
            elif not isinstance(part, cst.RemovalSentinel):
                after.append(part)
        return before if len(after) == len(before) and all(map(is_, after, before)) else after

    def _is_planned_in(self, node: Any) -> bool:
        line, column, *end = self.positions[id(node)]
        if decorators := getattr(node, "decorators", ()):
            line, column = self.positions[id(decorators[0])][:2]
        at = bisect_left(self.starts, (line, column))
        return at < len(self.starts) and self.starts[at] < tuple(end)

    def _left(self, kind: Kind, original: Any, updated: Any) -> Any:
        """A node whose parts are done: gaps in it close, and what is planned for it is carried out."""
        close = CLOSES.get(original.__class__)
        if close is not None:
            updated = close(self, original, updated)
        if kind.branches and is_empty(updated.orelse):
            updated = updated.with_changes(orelse=None)
        if isinstance(updated, cst.If):
            updated = turned(updated)
        if kind.name in self.kinds:
            key = (kind.name, *self.positions[id(original)])
            if key in self.wanted:
                self.found.add(key)
            for change in self.wanted.get(key, ()):
                updated = change.rewrite(original, updated) if change.rewrite else None
                if updated is None:
                    return self._gone(original)
        heads = HEADS.get(original.__class__, ()) if updated is not original else ()
        if not heads or updated.__class__ is not original.__class__ or not changes_in(original, updated, heads):
            return updated
        has = self._has_comments(original, self.positions[id(original.body)][0])
        return with_comments(original, updated, heads) if has else updated

    def _has_comments(self, node: Any, last: int) -> bool:
        """Whether a comment may stand in a node, above the line `last` of it: those of that line end the statement."""
        at = bisect_left(self.commented, self.positions[id(node)][0])
        return at < len(self.commented) and self.commented[at] < last

    def _gone(self, original: cst.CSTNode) -> cst.CSTNode:
        if isinstance(original, COMPOUND):
            lines = getattr(original, "leading_lines", ())
            return cst.SimpleStatementLine([Gone()], leading_lines=lines)
        return Gone()

    def _close_line(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        kept = [s for s in updated.body if not isinstance(s, Gone)]
        if kept and updated is not original and self._has_comments(original, self.positions[id(original)][2]):
            updated = with_comments(original, updated, ("body",))
        if any(isinstance(s, Under) for s in kept):
            return _parted(updated, kept)
        if len(kept) == len(updated.body):
            return updated
        if not kept:
            return updated.with_changes(body=[Gone()])
        if kept[-1] is not updated.body[-1]:  # `a; b;  # c` ends as it ended
            kept[-1] = kept[-1].with_changes(semicolon=original.body[-1].semicolon)
        return updated.with_changes(body=kept)

    def _close_suite(self, original: cst.SimpleStatementSuite, updated: cst.SimpleStatementSuite) -> Any:
        """`for x in xs: a; b` without some of its statements; the last one ends as the last one ended."""
        kept = [s for s in updated.body if not isinstance(s, Gone)] or list(updated.body[-1:])
        if len(kept) == len(updated.body):
            return updated
        kept[-1] = kept[-1].with_changes(semicolon=original.body[-1].semicolon)
        return updated.with_changes(body=kept)

    def _close_block(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock:
        body, footer = close_gaps(updated.body, updated.footer)
        if body is updated.body:
            return updated
        if not body:
            body = [cst.SimpleStatementLine([Empty()])]
        return updated.with_changes(body=body, footer=footer)

    def _close_module(self, original: cst.Module, updated: cst.Module) -> cst.Module:
        body, footer = close_gaps(updated.body, updated.footer)
        return updated if body is updated.body else updated.with_changes(body=body, footer=footer)


CLOSES: dict[type, Callable[[Pass, Any, Any], Any]] = {
    cst.SimpleStatementLine: Pass._close_line,
    cst.SimpleStatementSuite: Pass._close_suite,
    cst.IndentedBlock: Pass._close_block,
    cst.Module: Pass._close_module,
    cst.FormattedString: lambda _, original, updated: with_other_quotes(original, updated),
}


def _as_tight(before: Any, after: Any) -> Any:
    """An operand in parentheses where it holds together less than the one before it did."""
    code = cst.Module([]).code_for_node
    same = before.__class__ is after.__class__ and not before.lpar
    operators = (getattr(before, "operator", None).__class__, getattr(after, "operator", None).__class__)
    if same and operators[0] is operators[1]:  # the texts of a long sum are long
        return after
    if after.lpar or tightness(code(after)) >= tightness(code(before)):
        return after
    return after.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])

"""What every codemod shares: a plan made from `ast` facts, and one libcst pass that carries it out.

The plan names nodes; the pass finds them by kind and position, so that a file without a plan never imports libcst.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ..facts.script import Facts
from ..facts.spelled import are_alike
from ..report import Edit, Note

if TYPE_CHECKING:
    import libcst as cst

    Rewrite = Callable[[cst.CSTNode, cst.CSTNode], cst.CSTNode]


Key = tuple[str, int, int, int, int]  # libcst's class and the place


@dataclass(frozen=True)
class Insertion:
    """A definition, if any, before the statement of the module that starts on a line; and imports that are needed."""

    line: int
    text: str
    imports: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Change:
    """One planned change: the node as `ast` knows it, its edit in the report, and how libcst rewrites it.

    `rewrite` is given (original, updated) and returns the new node; None removes the statement; comments above it stay.
    """

    node: ast.AST
    edit: Edit
    rewrite: Rewrite | None
    gone: tuple[ast.AST, ...] = ()  # the parts of the node that are no longer evaluated afterwards
    insertion: Insertion | None = None
    told: bool = True  # False for a part of a change that is told of as a whole
    reads: tuple[ast.AST, ...] = ()  # of what goes, what is read again in the new text
    head: bool = False  # whether `rewrite` looks at nothing below the head of a compound statement


class NotFound(Exception):
    """Planned places that the pass did not meet; the file is then left as it was."""

    def __init__(self, edits: list[Edit]) -> None:
        super().__init__(", ".join(f"line {e.line}: {e.message}" for e in edits))
        self.edits = edits


class Codemod:
    """One idea, one file: `plan` says what would change and why, from facts alone."""

    code: ClassVar[str]
    name: ClassVar[str]

    def plan(self, facts: Facts) -> Iterator[Change]:
        raise NotImplementedError

    def notes(self, facts: Facts) -> Iterable[Note]:
        """What was seen and left, known once the plan is made."""
        return ()

    def edit(self, facts: Facts, node: ast.AST, message: str, safe: bool = True) -> Edit:
        line, column, _, _ = facts.text.key(node)
        return Edit(line, column + 1, self.code, message, safe)


def assigns_itself(target: ast.expr, value: ast.expr, left: Callable[[ast.expr], ast.expr]) -> bool:
    """Whether `left`, what a codemod leaves of an expression, makes `x = x` of an assignment, or `a, b = a, b`."""
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = list(zip(target.elts, value.elts, strict=True))
    rest = [(t, v, left(v)) for t, v in pairs]
    return any(r is not v for _, v, r in rest) and all(are_alike(t, r) for t, _, r in rest)


def apply(facts: Facts, changes: Iterable[Change]) -> str:
    """The text after the changes, every byte outside them kept."""
    wanted: dict[Key, list[Change]] = {}
    insertions: list[Insertion] = []
    for c in changes:
        if c.insertion is not None:
            insertions.append(c.insertion)
        wanted.setdefault((kind_of(facts, c.node), *facts.text.key(c.node)), []).append(c)
    if not wanted:
        return facts.text.text
    from ._insertions import added_lines, with_added
    from ._pass import in_order
    from ._regions import regions_of
    from ._together import rewritten_regions

    wanted = {key: in_order(own) for key, own in wanted.items()}
    text = facts.text.text
    added = added_lines(facts, insertions) if insertions else []
    heads = [key[1:] for key, own in wanted.items() if all(c.head for c in own)]
    regions = regions_of(facts, (key[1:] for key in wanted), heads)
    out, at = [], 0
    for region, new in zip(regions, rewritten_regions(facts, regions, wanted, added), strict=True):
        start, stop = facts.text.line_span(region.first, region.last)
        out += [with_added(text, at, start, added), new]
        at = stop
    result = "".join([*out, with_added(text, at, len(text), added)])
    ended = not text or text.endswith(("\n", "\r"))  # the last line may have gone, and left the end of the one before
    return result if ended else result.removesuffix(facts.text.newline)


LIBCST_NAMES = {
    "arg": "Param",
    "BinOp": "BinaryOperation",
    "BoolOp": "BooleanOperation",
    "Compare": "Comparison",
    "JoinedStr": "FormattedString",
    "UnaryOp": "UnaryOperation",
}


def kind_of(facts: Facts, node: ast.AST) -> str:
    """The libcst class that an `ast` node is found as."""
    if isinstance(node, ast.JoinedStr) and facts.text.is_concatenated(node):
        return "ConcatenatedString"
    if isinstance(node, ast.Constant):
        return {int: "Integer", float: "Float", str: "SimpleString"}.get(type(node.value), "Name")
    name = type(node).__name__
    name = name.removeprefix("Async") if isinstance(node, ast.stmt) else name
    if name in ("If", "For", "While", "With", "Try", "TryStar", "Match", "FunctionDef", "ClassDef"):
        return name
    if isinstance(node, ast.stmt):
        return "statement"
    return LIBCST_NAMES.get(name, name)

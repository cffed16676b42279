"""What a rule is: one class that holds its code, its reason, its examples and its check.

A rule says what it wants to see: the names in `calls` (the last part of what is called) bring those calls to
`check_call`; `check_class`, `check_function`, `check_assign` and their like get every such node; `check_file` sees the
file once.
The examples are its tests and its page in the docs.
"""

from __future__ import annotations

import ast
from collections import namedtuple
from collections.abc import Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .edits import Repair
    from .file import File

# Lines and columns count from 1, columns in characters; `fix` is "safe", "unsafe" or None.
Finding = namedtuple("Finding", "code name line column end_line end_column message fix")

# The method of a rule that is given each node of a type.
NODE_CHECKS: dict[str, tuple[type[ast.AST], ...]] = {
    "check_assign": (ast.Assign,),
    "check_augmented": (ast.AugAssign,),
    "check_class": (ast.ClassDef,),
    "check_function": (ast.FunctionDef, ast.AsyncFunctionDef),
    "check_if": (ast.If,),
    "check_decision": (ast.If, ast.While, ast.IfExp, ast.Assert),
    "check_operation": (ast.BinOp,),
    "check_subscript": (ast.Subscript,),
    "check_loop": (ast.For, ast.While),
    "check_expression": (ast.Expr,),
    "check_import": (ast.ImportFrom,),
}


class Rule:
    code: str
    name: str
    why: str
    BAD: str | tuple[str, ...]
    GOOD: str | tuple[str, ...]

    fix: str | None = None  # "safe" or "unsafe", where --fix settles it
    settled_by: str | None = None  # the codemod's module in migrate/codemods; without one, findings bring their repair
    lesser = False  # shown only when selected by its own code, or with ALL
    calls: tuple[str, ...] = ()  # names of the calls that check_call wants
    see: str | None = None  # a page that says more

    def finding(self, node: ast.AST, message: str, file: File, repair: Repair | None = None) -> Finding:
        return file.finding(node, self, message, repair)

    # what a rule may define
    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        raise NotImplementedError

    def check_file(self, file: File) -> Iterator[Finding]:
        raise NotImplementedError


def examples(given: str | tuple[str, ...]) -> tuple[str, ...]:
    """The examples of a rule, without their common indentation."""
    import textwrap

    texts = (given,) if isinstance(given, str) else given
    return tuple(textwrap.dedent(t).strip("\n") + "\n" for t in texts)

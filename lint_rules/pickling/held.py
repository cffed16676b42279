"""Values that a module or data set keeps in an attribute from its start, what PTM204 to PTM206 look at."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule


class Held(Rule):
    """A rule about a value kept in an attribute of a module or data set."""

    def held(self, value: ast.expr, file: File) -> str | None:
        raise NotImplementedError

    def check_file(self, file: File) -> Iterator[Finding]:
        for target, value, statement in file.kept if file.classes.kinds else ():
            if not file.classes.kind_of(statement) or not _runs_at_start(statement, file):
                continue
            holder = file.nodes.class_of(statement)
            if holder is not None and any(
                isinstance(s, ast.FunctionDef) and s.name in ("__getstate__", "__reduce__", "__reduce_ex__")
                for s in holder.body
            ):
                continue  # it says itself how it is pickled
            what = self.held(value, file)
            if what is not None and not _cleared(target, statement, file):
                yield self.finding(statement, f"`self.{target.attr}` holds {what}, which cannot be pickled", file)


def _runs_at_start(statement: ast.stmt, file: File) -> bool:
    """Whether the statement stands in `__init__`, or in a method that only `__init__` calls."""
    method = file.classes.method_of(statement)
    if method is None or method.name == "__init__":
        return method is not None
    callers = file.loops.calls_of(method)
    return bool(callers) and all(
        (caller := file.classes.method_of(call)) is not None
        and caller.name == "__init__"
        and file.nodes.class_of(call) is file.nodes.class_of(statement)
        for call in callers
    )


def _cleared(target: ast.Attribute, statement: ast.stmt, file: File) -> bool:
    """Whether the same method gives the attribute something else afterwards: `self.file = None` once it was read."""
    method = file.classes.method_of(statement)
    return any(
        other.attr == target.attr and after.lineno > statement.lineno and file.classes.method_of(after) is method
        for other, _, after in file.kept
    )


def called(value: ast.expr, file: File) -> str:
    """The full name of what a value is the result of."""
    if not isinstance(value, ast.Call):
        return ""
    func = value.func
    return file.resolve(func) or (func.id if isinstance(func, ast.Name) else "")

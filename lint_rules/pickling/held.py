"""Values that a module or data set keeps in an attribute from its start, what PTM204 to PTM206 look at."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File, is_self
from ..rule import Finding, Rule


class Held(Rule):
    """A rule about a value kept in an attribute of a module or data set."""

    def held(self, assign: ast.Assign, file: File) -> str | None:
        raise NotImplementedError

    def check_assign(self, assign: ast.Assign, file: File) -> Iterator[Finding]:
        target = assign.targets[0]
        if not isinstance(target, ast.Attribute) or not is_self(target.value):
            return
        method = file.classes.method_of(assign)
        if method is None or method.name != "__init__" or not file.classes.kind_of(assign):
            return
        holder = file.nodes.class_of(assign)
        if holder is not None and any(
            isinstance(s, ast.FunctionDef) and s.name in ("__getstate__", "__reduce__", "__reduce_ex__")
            for s in holder.body
        ):
            return  # it says itself how it is pickled
        what = self.held(assign, file)
        if what is not None:
            yield self.finding(assign, f"`self.{target.attr}` holds {what}, which cannot be pickled", file)


def called(assign: ast.Assign, file: File) -> str:
    if not isinstance(assign.value, ast.Call):
        return ""
    func = assign.value.func
    return file.resolve(func) or (func.id if isinstance(func, ast.Name) else "")

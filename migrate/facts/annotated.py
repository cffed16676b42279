"""Annotated assignments, which assign: `x: int = 3` of a function or of the module is an `ast.Assign` here.

Whoever asks for assignments would else have to ask for both kinds. What the body of a class annotates are its fields,
which stay what they are; so does a name that is given no value.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Annotated(ast.Assign):
    """An assignment with an annotation; whatever takes an `ast.Assign` or unparses an `ast.AnnAssign` takes it."""

    _fields = ("targets", "annotation", "value")
    annotation: ast.expr
    simple: int

    @property
    def target(self) -> ast.expr:
        return self.targets[0]


Annotated.__name__ = ast.AnnAssign.__name__  # which `ast.unparse` and `ast.dump` go by

_BLOCKS: dict[type, tuple[str, ...]] = {
    kind: tuple(f for f in ("body", "orelse", "finalbody", "handlers", "cases") if f in kind._fields)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, (ast.stmt, ast.excepthandler, ast.match_case))
}
_BLOCKS = {kind: fields for kind, fields in _BLOCKS.items() if fields}


def as_assignments(tree: ast.Module) -> ast.Module:
    """The same tree, in which annotated assignments are assignments."""
    _turn(tree.body, False)
    return tree


def _turn(body: Sequence[Any], of_class: bool) -> None:
    for s in body:
        kind = s.__class__
        if kind is ast.AnnAssign:
            if s.value is not None and not of_class:
                target = s.target
                del s.target
                s.__class__ = Annotated
                s.targets = [target]
        elif kind in _BLOCKS:
            within = kind is ast.ClassDef or (of_class and kind not in FUNCTIONS)
            for field in _BLOCKS[kind]:
                _turn(getattr(s, field), within)

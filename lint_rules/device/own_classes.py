"""Classes of a file whose `cuda()` and `to()` are their own: `Money(3).to("usd")` places nothing."""

from __future__ import annotations

import ast

from ptmigrate.migrate.facts.nodes import walk
from ptmigrate.migrate.facts.own_methods import own_methods

from ..file import File

# methods whose own job is to move: `def cuda(self): return self._apply(lambda t: t.cuda())`
MOVING_METHODS = {"cuda", "to", "xpu", "_apply", "to_device", "move_to", "move_to_device", "to_cuda", "pin_memory"}


def places_nothing(func: ast.Attribute, file: File) -> bool:
    """Whether the method is one of a plain class of this file, that moves nothing itself."""
    methods = own_methods(file.facts, func) if func.attr in file.own_methods else []
    return bool(methods) and not any(_may_place(n, file) for m in methods for n in walk(m))


def _may_place(n: ast.AST, file: File) -> bool:
    if isinstance(n, ast.Attribute):
        return n.attr in MOVING_METHODS or (file.resolve(n) or "").startswith("torch.")
    return isinstance(n, ast.keyword) and n.arg == "device"

"""PTM505: gradients that are filled with zeros cost a write, a read and memory that None does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import without_argument
from ..file import File, argument, argument_node
from ..rule import Finding, Rule


class ZeroedGradients(Rule):
    code = "PTM505"
    name = "zeroed-gradients"
    why = (
        "zero_grad(set_to_none=False) writes zeros that the next backward reads and adds to. Since torch 2.0 the "
        "default lets go of the gradients instead."
    )
    fix = "unsafe"
    calls = ("zero_grad",)

    BAD = """
        import torch
        optimizer.zero_grad(set_to_none=False)
        """
    GOOD = """
        import torch
        optimizer.zero_grad()
        optimizer.zero_grad(set_to_none=True)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        given = argument(call, 0, "set_to_none")
        if any(isinstance(a.target, ast.Attribute) and a.target.attr == "grad" for a in file.nodes.of(ast.AugAssign)):
            return  # `p.grad += g` by hand needs something to add to
        if isinstance(call.func, ast.Attribute) and isinstance(given, ast.Constant) and given.value is False:
            repair = without_argument(call, argument_node(call, 0, "set_to_none"))
            text = f"`{file.source(call)}` fills gradients with zeros; leave the default"
            yield self.finding(call, text, file, repair)

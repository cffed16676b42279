"""PTM609: volatile is gone, and with it what kept an evaluation from building graphs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File, is_constant, keyword
from ..rule import Finding, Rule


class VolatileArgument(Rule):
    code = "PTM609"
    name = "volatile-argument"
    why = (
        "`volatile=True` was removed in torch 0.4 and is an error or ignored: an evaluation that relies on it builds "
        "the graph of every batch. Use torch.no_grad()."
    )
    fix = "unsafe"
    settled_by = "old_idioms"
    calls = ("Variable",)

    BAD = """
        from torch.autograd import Variable
        x = Variable(x, volatile=True)
        """
    GOOD = """
        import torch
        with torch.no_grad():
            y = model(x)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        given = keyword(call, "volatile")
        if given is not None and not is_constant(given, False) and file.resolve(call.func) == "torch.autograd.Variable":
            yield self.finding(call, "`volatile` is gone; evaluate under torch.no_grad()", file)

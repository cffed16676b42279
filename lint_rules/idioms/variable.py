"""PTM601: Variable has been a tensor since torch 0.4."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule


class Variable(Rule):
    code = "PTM601"
    name = "variable"
    why = (
        "Tensors and Variables were merged in torch 0.4: the call returns its argument, at the price of a call a step."
    )
    fix = "safe"
    settled_by = "old_idioms"
    calls = ("Variable",)

    BAD = """
        from torch.autograd import Variable
        x = Variable(x)
        """
    GOOD = """
        import torch
        import tensorflow as tf
        x = torch.zeros(2, requires_grad=True)
        y = tf.Variable(1.0)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if file.resolve(call.func) == "torch.autograd.Variable":
            yield self.finding(call, "Variable does nothing any more; use the tensor itself", file)

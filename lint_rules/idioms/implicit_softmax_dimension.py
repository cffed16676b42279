"""PTM607: softmax without a dimension guesses it, and warns at every call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File, argument, passes_unknown
from ..rule import Finding, Rule

FUNCTIONS = {"softmax", "log_softmax", "softmin"}
MODULES = {"Softmax", "LogSoftmax", "Softmin"}


class ImplicitSoftmaxDimension(Rule):
    code = "PTM607"
    name = "implicit-softmax-dimension"
    why = (
        "Without `dim` the dimension depends on how many the tensor has: 0 for one or three, else 1. A batch of "
        "another shape is normalised over another dimension, silently."
    )
    calls = (*sorted(FUNCTIONS), *sorted(MODULES))

    BAD = (
        """
        import torch.nn.functional as F
        p = F.softmax(logits)
        """,
        """
        from torch import nn
        layer = nn.LogSoftmax()
        """,
    )
    GOOD = """
        import torch.nn.functional as F
        from torch import nn
        p = F.softmax(logits, dim=1)
        q = F.log_softmax(logits, -1)
        layer = nn.Softmax(dim=-1)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func) or ""
        home, _, name = full.rpartition(".")
        position = 1 if home == "torch.nn.functional" and name in FUNCTIONS else 0
        if not position and not (home == "torch.nn" and name in MODULES):
            return
        if argument(call, position, "dim") is None and not passes_unknown(call):
            yield self.finding(call, f"`{file.source(call)}` guesses its dimension; say dim=", file)

"""PTM606: functions that change their argument end in an underscore since torch 0.4."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule

INITS = (
    "uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform",
    "kaiming_normal", "orthogonal", "sparse",
)  # fmt: skip


class RenamedInPlace(Rule):
    code = "PTM606"
    name = "renamed-in-place"
    why = (
        "The names without an underscore are deprecated since torch 0.4: some are gone, the others warn at every call."
    )
    calls = ("clip_grad_norm", *INITS)

    BAD = (
        """
        import torch
        torch.nn.utils.clip_grad_norm(model.parameters(), 1.0)
        """,
        """
        from torch.nn import init
        init.xavier_uniform(layer.weight)
        """,
    )
    GOOD = """
        import torch
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        torch.nn.init.xavier_uniform_(layer.weight)
        noise = torch.normal(mean, std)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func) or ""
        if full == "torch.nn.utils.clip_grad_norm" or full.startswith("torch.nn.init."):
            yield self.finding(call, f"{full} is deprecated; use {full}_", file)

"""PTM402: a DistributedSampler that is never told the epoch gives the same order in each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File, argument, is_constant, passes_unknown
from ..rule import Finding, Rule


class MissingSetEpoch(Rule):
    code = "PTM402"
    name = "missing-set-epoch"
    why = (
        "A DistributedSampler shuffles by its seed and the epoch that set_epoch told it. Without the call every epoch "
        "sees the samples in the same order, in the same batches."
    )
    see = "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler"
    calls = ("DistributedSampler",)

    BAD = """
        import torch
        sampler = torch.utils.data.distributed.DistributedSampler(data)
        for epoch in range(10):
            train(loader)
        """
    GOOD = (
        """
        import torch
        sampler = torch.utils.data.distributed.DistributedSampler(data)
        for epoch in range(10):
            sampler.set_epoch(epoch)
            train(loader)
        """,
        """
        import torch
        sampler = torch.utils.data.distributed.DistributedSampler(data, shuffle=False)
        for epoch in range(10):
            evaluate(loader)
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if file.resolve(call.func) != "torch.utils.data.DistributedSampler" or passes_unknown(call):
            return
        shuffled = not is_constant(argument(call, 3, "shuffle"), False)
        if shuffled and "set_epoch" not in file.text and _has_epochs(file) and not _evaluates(call, file):
            yield self.finding(call, "set_epoch is never called: every epoch sees the same order", file)


def _has_epochs(file: File) -> bool:
    """Whether the epochs are counted in this file; else the caller of a helper may call set_epoch."""
    return any("epoch" in file.source(loop.target) for loop in file.nodes.of(ast.For))


def _evaluates(call: ast.Call, file: File) -> bool:
    statement = file.source(file.nodes.statement_of(call), 200).lower()
    return any(
        word in statement.partition("(")[0] + str(call.args[:1] and file.source(call.args[0]))
        for word in ("val", "test", "eval")
    )

"""PTM406: a DistributedSampler that is never told the epoch gives the same order in each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..data.loaders import EVALUATION
from ..file import File, argument, is_constant, last_part, passes_unknown
from ..rule import Finding, Rule


class MissingSetEpoch(Rule):
    code = "PTM406"
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
        if not shuffled or "set_epoch" in file.text or not _has_epochs(file):
            return
        if not _is_handed_on(call, file) and not _evaluates(call, file):
            yield self.finding(call, "set_epoch is never called: every epoch sees the same order", file)


def _has_epochs(file: File) -> bool:
    """Whether the epochs are counted in this file; else the caller of a helper may call set_epoch."""
    return any("epoch" in file.source(loop.target) for loop in file.nodes.of(ast.For))


def _is_handed_on(call: ast.Call, file: File) -> bool:
    """Whether the sampler is passed to something that may tell it the epoch, elsewhere."""
    parent = file.nodes.parents.get(call)
    if not isinstance(parent, ast.Assign) or not isinstance(parent.targets[0], ast.Name):
        return isinstance(parent, ast.Return)
    name = parent.targets[0].id
    for use in file.nodes.of(ast.Name):
        if use.id == name and isinstance(use.ctx, ast.Load):
            holder = file.nodes.parents[use]
            holder = file.nodes.parents[holder] if isinstance(holder, ast.keyword) else holder
            if isinstance(holder, (ast.Return, ast.Tuple)) or (
                isinstance(holder, ast.Call) and last_part(holder.func) not in ("DataLoader", "BatchSampler", "dict")
            ):
                return True
    return False


def _evaluates(call: ast.Call, file: File) -> bool:
    """Whether what the sampler is called, or what it draws from, is for evaluation."""
    parent = file.nodes.parents.get(call)
    names = [last_part(parent.targets[0])] if isinstance(parent, ast.Assign) else []
    names += [last_part(a) for a in call.args[:1]]
    return any(name and EVALUATION.search(name) for name in names)

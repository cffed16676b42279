"""PTM413: batch norm of a rank's own share of the batch is another norm."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File, argument, last_part
from ..rule import Finding, Rule

NORMS = {"torch.nn.BatchNorm1d", "torch.nn.BatchNorm2d", "torch.nn.BatchNorm3d"}


class UnsynchronisedBatchNorm(Rule):
    code = "PTM413"
    name = "unsynchronised-batch-norm"
    why = (
        "Under DistributedDataParallel each rank normalises with the mean and variance of its own batch; with small "
        "batches a rank the model that results is another one. Convert with SyncBatchNorm.convert_sync_batchnorm."
    )
    see = "https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html"
    calls = ("DistributedDataParallel", "DDP")

    BAD = """
        import torch
        from torch import nn
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        model = nn.parallel.DistributedDataParallel(model)
        """
    GOOD = (
        """
        import torch
        from torch import nn
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        model = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(model))
        """,
        """
        from torch import nn
        model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if file.resolve(call.func) != "torch.nn.parallel.DistributedDataParallel" or "SyncBatchNorm" in file.text:
            return
        norm = next(_norms(argument(call, 0, "module"), file), None)
        if norm is not None:
            text = f"the {last_part(norm.func)} of line {norm.lineno} sees each rank's own batch only"
            yield self.finding(call, f"{text}; convert the model to SyncBatchNorm first", file)


def _norms(model: ast.expr | None, file: File) -> Iterator[ast.Call]:
    """The batch norms in the classes of this file that the model is made of."""
    values = file.tensors.assigned(model) if isinstance(model, ast.Name) else [model]
    for value in values:
        for node in ast.walk(value) if value is not None else ():
            if isinstance(node, ast.Call):
                c = file.classes.instances.get(node.func.id) if isinstance(node.func, ast.Name) else None
                yield from (n for n in ast.walk(c or node) if isinstance(n, ast.Call) and _is_norm(n, file))


def _is_norm(call: ast.Call, file: File) -> bool:
    return (file.resolve(call.func) or "") in NORMS

"""PTM413: batch norm of a rank's own share of the batch is another norm."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule


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
        for name in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"):
            for norm in file.nodes.calls.get(name, ()):
                if (file.resolve(norm.func) or "").startswith("torch.nn."):
                    text = f"the {name} of line {norm.lineno} sees each rank's own batch only"
                    yield self.finding(call, f"{text}; convert the model to SyncBatchNorm first", file)
                    return

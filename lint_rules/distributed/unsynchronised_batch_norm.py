"""PTM413: batch norm of a rank's own share of the batch is another norm."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ptmigrate.migrate.facts.nodes import walk

from ..edits import wrapped
from ..file import File, argument, last_part
from ..rule import Finding, Rule

NORMS = {"torch.nn.BatchNorm1d", "torch.nn.BatchNorm2d", "torch.nn.BatchNorm3d"}

# torchvision's models with batch norm
MODELS = re.compile(
    r"torchvision\.models\.((wide_)?resne(x)?t|densenet|mobilenet|mnasnet|shufflenet|googlenet|inception|regnet"
    r"|efficientnet|vgg\d+_bn)"
)


class UnsynchronisedBatchNorm(Rule):
    code = "PTM413"
    name = "unsynchronised-batch-norm"
    why = (
        "Under DistributedDataParallel each rank normalises with the mean and variance of its own batch; with small "
        "batches a rank the model that results is another one. Convert with SyncBatchNorm.convert_sync_batchnorm."
    )
    fix = "unsafe"
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
            what = last_part(norm.func) or ""
            made = what if what.startswith("BatchNorm") else f"batch norm of {what}"
            text = f"the {made} of line {norm.lineno} sees each rank's own batch only"
            model = argument(call, 0, "module")
            convert = f"{file.torch}.nn.SyncBatchNorm.convert_sync_batchnorm("
            repair = wrapped(model, convert) if model is not None and file.torch else None
            yield self.finding(call, f"{text}; convert the model to SyncBatchNorm first", file, repair)


def _norms(model: ast.expr | None, file: File) -> Iterator[ast.Call]:
    """The batch norms in the classes of this file that the model is made of, and calls that make models with some."""
    pending: list[ast.AST] = []
    for value in file.tensors.assigned(model) if isinstance(model, ast.Name) else [model]:
        if value is not None:
            pending.append(value)
    seen: set[ast.AST] = set()
    while pending:
        part = pending.pop()
        for node in walk(part, ast.Call):
            full = file.resolve(node.func) or ""
            if full in NORMS or MODELS.match(full):
                yield node
            made = file.classes.instances.get(node.func.id) if isinstance(node.func, ast.Name) else None
            if made is not None and made not in seen:
                seen.add(made)
                pending.append(made)

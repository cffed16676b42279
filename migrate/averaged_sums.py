"""Losses that are sums: DistributedDataParallel stepped by their mean over ranks, a Trainer by that of the batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .codemods.plain_process import PlainProcess
from .facts.script import Facts
from .facts.wrapped import WRAPPERS
from .report import Note

AVERAGING = {w for w in WRAPPERS if "DistributedDataParallel" in w}
SUMMED = 'loss_reduction = "sum"'


def told(original: Facts, text: str) -> Iterator[Note]:
    """A wrapper by hand around what is trained by sums: its gradients were divided by the number of ranks."""
    if SUMMED not in text or "DistributedDataParallel" not in original.text.text:
        return
    for c in original.walk(ast.Call):
        if original.names.resolve(c.func) in AVERAGING:
            line, column, _, _ = original.text.key(c)
            says = "its steps were by the mean of the ranks' sums; now they are by the sum over the whole batch"
            yield Note(line, column + 1, PlainProcess.code, f"`{original.short(c)}`: {says}, as on one process")
            return

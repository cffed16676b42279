"""PTM310: waiting for the device on purpose, at every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule
from .where import every_step, where

NAMES = {"torch.cuda.synchronize", "torch.mps.synchronize", "torch.xpu.synchronize", "torch.accelerator.synchronize"}


class Synchronize(Rule):
    code = "PTM310"
    name = "synchronize-in-hot-loop"
    why = (
        "`synchronize()` makes the host wait until the device is idle; at every step nothing overlaps any more. "
        "It belongs in a benchmark; to time steps, use CUDA events or a profiler."
    )
    calls = ("synchronize",)

    BAD = """
        import torch
        for x, y in loader:
            criterion(model(x), y).backward()
            torch.cuda.synchronize()
        """
    GOOD = """
        import torch
        for x, y in loader:
            criterion(model(x), y).backward()
        torch.cuda.synchronize()
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if file.resolve(call.func) in NAMES and (hot := every_step(call, file)):
            yield self.finding(call, f"the host waits on purpose at every step of {where(hot)}", file)

"""PTM106: choosing this process's card by hand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..file import File, last_part
from ..rule import Finding, Rule

SETS = {"torch.cuda.set_device", "torch.xpu.set_device", "torch.accelerator.set_device_index",
        "torch.accelerator.set_device_idx"}  # fmt: skip
BEFORE = re.compile(r"_?(prev|old|orig|saved|original|previous|current)(_|\d|ious|\Z)")  # what it was, put back


class SetDevice(Rule):
    code = "PTM106"
    name = "set-device"
    why = (
        "`set_device` ties the process to one card of one kind, by a rule that holds on one cluster only. "
        "The launcher gives each process its device; the runtime uses it."
    )
    calls = ("set_device", "set_device_index", "set_device_idx")

    BAD = """
        import torch
        torch.cuda.set_device(0)
        """
    GOOD = """
        import torch
        print(torch.cuda.current_device())
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if file.resolve(call.func) in SETS and not (call.args and BEFORE.match(last_part(call.args[0]) or "")):
            yield self.finding(call, f"`{file.source(call)}` chooses the card by hand", file)

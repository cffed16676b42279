"""PTM605: mixed precision lives in torch.amp, for every device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule

OLD = {
    "torch.cuda.amp.autocast": 'torch.amp.autocast("cuda")',
    "torch.cuda.amp.GradScaler": 'torch.amp.GradScaler("cuda")',
    "torch.cuda.amp.custom_fwd": 'torch.amp.custom_fwd(device_type="cuda")',
    "torch.cuda.amp.custom_bwd": 'torch.amp.custom_bwd(device_type="cuda")',
    "torch.cpu.amp.autocast": 'torch.amp.autocast("cpu")',
    "torch.cpu.amp.GradScaler": 'torch.amp.GradScaler("cpu")',
    "apex.amp.initialize": "torch.amp (apex.amp is no longer developed)",
    "apex.amp.scale_loss": "torch.amp.GradScaler (apex.amp is no longer developed)",
}


class OldAmp(Rule):
    code = "PTM605"
    name = "old-amp"
    why = "torch.cuda.amp and torch.cpu.amp are deprecated since torch 2.4, and tie the script to one kind of device."
    calls = tuple(sorted({name.rpartition(".")[2] for name in OLD}))

    BAD = (
        """
        import torch
        scaler = torch.cuda.amp.GradScaler()
        """,
        """
        from torch.cuda.amp import autocast
        with autocast():
            y = model(x)
        """,
    )
    GOOD = """
        import torch
        scaler = torch.amp.GradScaler("cuda")
        with torch.amp.autocast("cuda"):
            y = model(x)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func)
        if full in OLD:
            yield self.finding(call, f"{full} is deprecated; use {OLD[full]}", file)

    def check_function(self, node: ast.FunctionDef, file: File) -> Iterator[Finding]:
        for decorator in node.decorator_list:
            full = file.resolve(decorator)
            if full in OLD:
                yield self.finding(decorator, f"{full} is deprecated; use {OLD[full]}", file)

"""PTM605: mixed precision lives in torch.amp, for every device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ptmigrate.migrate.facts.text import Text

from ..edits import Edit, Repair
from ..file import File, passes_unknown
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
VERSION = re.compile(r"version|hasattr|TORCH_?(GREATER|LESS|GE|LT|2)", re.IGNORECASE)
# what the positional arguments of the old autocast are called
AUTOCAST = ("enabled", "dtype", "cache_enabled")


class OldAmp(Rule):
    code = "PTM605"
    name = "old-amp"
    why = "torch.cuda.amp and torch.cpu.amp are deprecated since torch 2.4, and tie the script to one kind of device."
    fix = "safe"
    calls = tuple(sorted({name.rpartition(".")[2] for name in OLD}))

    BAD = (
        """
        import torch
        scaler = torch.cuda.amp.GradScaler()
        """,
        """
        import torch
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
        if full in OLD and not _for_old_torch(call, file):
            yield self.finding(call, f"{full} is deprecated; use {OLD[full]}", file, _repair(call, full, file))

    def check_function(self, node: ast.FunctionDef, file: File) -> Iterator[Finding]:
        for decorator in node.decorator_list:
            full = file.resolve(decorator)
            if full in OLD:
                yield self.finding(decorator, f"{full} is deprecated; use {OLD[full]}", file)


def _for_old_torch(node: ast.AST, file: File) -> bool:
    """In a branch that asks which version of torch is there, or whether it has the new name."""
    child = node
    for up in file.nodes.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test and VERSION.search(file.source(up.test, 200)):
            return True
        child = up
    return False


def _repair(call: ast.Call, full: str, file: File) -> Repair | None:
    """The new name under torch, with the device first; only autocast and GradScaler, where torch itself is imported."""
    home, _, name = full.rpartition(".")
    if name not in ("autocast", "GradScaler") or file.torch is None or passes_unknown(call):
        return None
    if name == "autocast" and len(call.args) > len(AUTOCAST):
        return None
    device = home.split(".")[1]
    given = [*call.args, *call.keywords]

    def repair(text: Text) -> list[Edit] | None:
        start, stop = text.span(call.func)
        opened = text.text.index("(", stop) + 1
        edits = [Edit(start, stop, f"{file.torch}.amp.{name}")]
        edits.append(Edit(opened, opened, f'"{device}"' + (", " if given else "")))
        for argument, keyword in zip(call.args if name == "autocast" else (), AUTOCAST, strict=False):
            at = text.span(argument)[0]
            edits.append(Edit(at, at, f"{keyword}="))
        # two edits in one place are one
        merged: dict[tuple[int, int], str] = {}
        for edit in edits:
            merged[edit[:2]] = merged.get(edit[:2], "") + edit.new
        return [Edit(*place, new) for place, new in merged.items()]

    return repair

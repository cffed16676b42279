"""PTM309: giving memory back at every step, only to ask for it again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.seldom import decided_by_the_step

from ..file import File
from ..rule import Finding, Rule
from .where import every_step, where

NAMES = {"torch.cuda.empty_cache", "torch.mps.empty_cache", "torch.xpu.empty_cache"}


class EmptyCache(Rule):
    code = "PTM309"
    name = "empty-cache-in-hot-loop"
    why = (
        "`empty_cache()` waits for the device and gives back memory that the next step asks for again; it never makes "
        "more room for torch itself. Leave it out, or call it between phases."
    )
    fix = "safe"
    settled_by = "steps"
    calls = ("empty_cache",)

    BAD = """
        import torch
        for x, y in loader:
            criterion(model(x), y).backward()
            torch.cuda.empty_cache()
        """
    GOOD = """
        import torch
        for x, y in loader:
            criterion(model(x), y).backward()
        torch.cuda.empty_cache()
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        hot = every_step(call, file) if file.resolve(call.func) in NAMES else None
        if hot is not None and not decided_by_the_step(call, file.nodes.ancestors(call)):
            yield self.finding(call, f"the memory cache is emptied at every step of {where(hot)}", file)

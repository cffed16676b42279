"""PTM109: a checkpoint is loaded onto the device that it was saved from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import with_argument
from ..file import File, argument, passes_unknown
from ..rule import Finding, Rule


class LoadWithoutMapLocation(Rule):
    code = "PTM109"
    name = "load-without-map-location"
    why = (
        "Without `map_location`, tensors go back to the device they were saved from: it may not be there, and all "
        "processes of a distributed run load onto the same card. Load to the CPU, or to this process's device."
    )
    fix = "unsafe"
    calls = ("load",)

    BAD = """
        import torch
        model.load_state_dict(torch.load("model.pt"))
        """
    GOOD = """
        import torch
        import numpy as np
        model.load_state_dict(torch.load("model.pt", map_location="cpu"))
        torch.load("model.pt", device)
        x = np.load("x.npy")
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if file.resolve(call.func) != "torch.load" or passes_unknown(call):
            return
        if argument(call, 1, "map_location") is None:
            yield self.finding(
                call,
                f"`{file.source(call)}` loads onto the device that it was saved from",
                file,
                with_argument(call, 'map_location="cpu"'),
            )

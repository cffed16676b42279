"""PTM111: card numbers written into the wrapper."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File, argument
from ..rule import Finding, Rule

WRAPPERS = {"torch.nn.parallel.DistributedDataParallel", "torch.nn.DataParallel"}


class LiteralDeviceIds(Rule):
    code = "PTM111"
    name = "literal-device-ids"
    why = (
        "Card numbers in the code hold for one machine; one process a card, all would take the same one. "
        "Use this process's local rank, or let the strategy wrap the model."
    )
    calls = ("DistributedDataParallel", "DataParallel", "DDP")

    BAD = """
        import torch
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
        """
    GOOD = """
        import torch
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        ids = argument(call, 1, "device_ids")
        if file.resolve(call.func) not in WRAPPERS or not isinstance(ids, ast.List | ast.Tuple) or not ids.elts:
            return
        if all(isinstance(e, ast.Constant) and isinstance(e.value, int) for e in ids.elts):
            yield self.finding(ids, f"`device_ids={file.source(ids)}` is written into the code", file)

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
        if ids is not None and file.resolve(call.func) in WRAPPERS and _is_literal(ids):
            yield self.finding(ids, f"`device_ids={file.source(ids)}` is written into the code", file)


def _is_literal(ids: ast.expr) -> bool:
    """`[0, 1]`, `range(4)`, `list(range(4))`."""
    if isinstance(ids, ast.Call) and isinstance(ids.func, ast.Name) and ids.func.id in ("range", "list") and ids.args:
        return all(_is_number(a) or _is_literal(a) for a in ids.args)
    return isinstance(ids, (ast.List, ast.Tuple)) and bool(ids.elts) and all(_is_number(e) for e in ids.elts)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int

"""PTM412: DataParallel copies the model to every device at every step, from one process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import Edit, Repair
from ..file import File
from ..rule import Finding, Rule


class DataParallel(Rule):
    code = "PTM412"
    name = "data-parallel"
    why = (
        "DataParallel runs all devices from one process: it copies the model at every step, is bound by one "
        "interpreter and cannot leave the machine. torch's own documentation recommends DistributedDataParallel, "
        "even for one node."
    )
    fix = "unsafe"
    see = "https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html"
    calls = ("DataParallel", "data_parallel")

    BAD = """
        import torch
        model = torch.nn.DataParallel(model)
        """
    GOOD = """
        import torch
        model = torch.nn.parallel.DistributedDataParallel(model)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func)
        if full in ("torch.nn.DataParallel", "torch.nn.parallel.data_parallel"):
            repair = _unwrapped(call) if full == "torch.nn.DataParallel" and ".module" not in file.text else None
            text = "DataParallel; run one process a device instead (ptrun --devices N)"
            yield self.finding(call, text, file, repair)


def _unwrapped(call: ast.Call) -> Repair | None:
    """The model itself; not where the code reaches through the wrapper with `.module`."""
    model = call.args[0] if call.args else None
    if not isinstance(model, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        return None
    return lambda text: [Edit(*text.span(call), text.get(model))]

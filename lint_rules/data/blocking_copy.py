"""PTM504: a copy from pinned memory could run beside the computation, and is waited for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import with_argument
from ..file import File, keyword, last_part, passes_unknown, root
from ..rule import Finding, Rule
from .loaders import is_true, option


class BlockingCopy(Rule):
    code = "PTM504"
    name = "blocking-copy"
    why = (
        "The batches are in pinned memory, so that their copy to the device could overlap with the computation; "
        "without non_blocking=True the host waits for it at every step."
    )
    fix = "safe"
    calls = ("cuda", "to")

    BAD = """
        import torch
        loader = torch.utils.data.DataLoader(data, num_workers=4, pin_memory=True)
        for x, y in loader:
            loss = criterion(model(x.to(device)), y)
            loss.backward()
        """
    GOOD = (
        """
        import torch
        loader = torch.utils.data.DataLoader(data, num_workers=4, pin_memory=True)
        for x, y in loader:
            loss = criterion(model(x.to(device, non_blocking=True)), y)
            loss.backward()
        """,
        """
        import torch
        loader = torch.utils.data.DataLoader(data, num_workers=4)
        for x, y in loader:
            loss = criterion(model(x.to(device)), y)
            loss.backward()
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if not isinstance(call.func, ast.Attribute) or passes_unknown(call) or not _pins(file):
            return
        if keyword(call, "non_blocking") is not None or len(call.args) > 1 or not _is_copy(call):
            return
        name = root(call.func.value)
        if not isinstance(name, ast.Name) or not isinstance(call.func.value, (ast.Name, ast.Subscript)):
            return
        if file.hot(call) and (file.tensors.comes_from_loader(name) or _is_rebound(call, name, file)):
            repair = with_argument(call, "non_blocking=True")
            yield self.finding(call, f"`{file.source(call)}` waits for the copy; add non_blocking=True", file, repair)


def _is_copy(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        return True
    target = call.args[0] if call.args else keyword(call, "device")
    if isinstance(target, ast.Constant):
        return isinstance(target.value, str) and target.value.startswith("cuda")
    return last_part(target) in ("device", "dev", "gpu", "local_rank", "rank") if target is not None else False


def _is_rebound(call: ast.Call, name: ast.Name, file: File) -> bool:
    """`x = x.to(device)` of what the loop was given."""
    values = file.tensors.assigned(name)
    return None in values and any(v is call for v in values) and len(values) <= 3


def _pins(file: File) -> bool:
    return any(is_true(option(c, "pin_memory")) for c in file.nodes.calls.get("DataLoader", ()))

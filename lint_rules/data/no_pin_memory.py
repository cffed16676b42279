"""PTM503: from pageable memory a batch is copied twice on its way to the GPU, and the host waits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import Repair, replaced, with_argument
from ..file import File, last_part
from ..rule import Finding, Rule
from .loaders import is_left_out, is_loader, option


class NoPinMemory(Rule):
    code = "PTM503"
    name = "no-pin-memory"
    why = (
        "Batches in pinned memory go to the GPU in one copy that runs beside the computation; from pageable memory the "
        "driver copies them once more, and the host waits for it."
    )
    fix = "unsafe"
    see = "https://docs.pytorch.org/docs/stable/data.html#memory-pinning"
    calls = ("DataLoader",)

    BAD = """
        from torch.utils.data import DataLoader
        loader = DataLoader(data, batch_size=32, num_workers=4)
        for x, y in loader:
            loss = criterion(model(x.cuda()), y.cuda())
            loss.backward()
        """
    GOOD = (
        """
        from torch.utils.data import DataLoader
        loader = DataLoader(data, batch_size=32, num_workers=4, pin_memory=True)
        for x, y in loader:
            loss = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
            loss.backward()
        """,
        """
        from torch.utils.data import DataLoader
        loader = DataLoader(data, batch_size=32, num_workers=4)
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if not is_loader(call, file) or not _copies_to_cuda(file):
            return
        given = option(call, "pin_memory")
        off = isinstance(given, ast.Constant) and given.value is False
        if off or is_left_out(call, "pin_memory"):
            text = "pin_memory=False" if off else "no pin_memory given"
            repair: Repair = replaced(given, "True") if given is not None else with_argument(call, "pin_memory=True")
            yield self.finding(call, f"{text}: the copies of its batches to the GPU make the host wait", file, repair)


def _copies_to_cuda(file: File) -> bool:
    """Whether what a hot loop is given goes to a GPU."""
    return any(file.hot(c) for c in file.nodes.calls.get("cuda", ()) if isinstance(c.func, ast.Attribute)) or (
        "cuda" in file.text
        and any(
            file.hot(c) and c.args and last_part(c.args[0]) in ("device", "dev", "gpu", "local_rank", "rank", "cuda")
            for c in file.nodes.calls.get("to", ())
        )
    )

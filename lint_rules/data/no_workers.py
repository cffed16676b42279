"""PTM501: without workers the training loop loads its own data, and the device waits for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule
from .loaders import holds_tensors, is_left_out, is_loader, option


class NoWorkers(Rule):
    code = "PTM501"
    name = "no-workers"
    why = (
        "With num_workers=0, the default, each batch is read and transformed in the process that trains, between two "
        "steps. Workers prepare the next batches meanwhile."
    )
    see = "https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading"
    calls = ("DataLoader",)

    BAD = (
        """
        from torch.utils.data import DataLoader
        loader = DataLoader(images, batch_size=32)
        """,
        """
        from torch.utils.data import DataLoader
        loader = DataLoader(images, batch_size=32, num_workers=0)
        """,
    )
    GOOD = (
        """
        from torch.utils.data import DataLoader
        loader = DataLoader(images, batch_size=32, num_workers=4)
        """,
        """
        from torch.utils.data import DataLoader, TensorDataset
        loader = DataLoader(TensorDataset(x, y), batch_size=32)
        """,
        """
        import torch
        loader = torch.utils.data.DataLoader(images, **options)
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if not is_loader(call, file) or holds_tensors(call, file):
            return
        given = option(call, "num_workers")
        if isinstance(given, ast.Constant) and given.value == 0:
            yield self.finding(call, "num_workers=0: every batch is loaded between two steps", file)
        elif is_left_out(call, "num_workers"):
            yield self.finding(call, "no num_workers given: every batch is loaded between two steps", file)

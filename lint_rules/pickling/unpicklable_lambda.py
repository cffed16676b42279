"""PTM201: a lambda where it has to be pickled: workers and processes that are spawned cannot be given it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule
from .carried import carried


class UnpicklableLambda(Rule):
    code = "PTM201"
    name = "unpicklable-lambda"
    why = (
        "Pickle stores functions by name, and a lambda has none: spawned workers and processes fail to start with it, "
        "and an object that holds one cannot be saved. Define a function at the top of the module."
    )

    fix = "unsafe"
    settled_by = "name_lambdas"
    BAD = (
        """
        from torch.utils.data import DataLoader
        loader = DataLoader(dataset, collate_fn=lambda batch: batch)
        """,
        """
        import torch
        from torchvision import transforms
        double = transforms.Lambda(lambda x: 2 * x)
        """,
        """
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.activation = lambda x: x * x
        """,
        """
        from torch.optim.lr_scheduler import LambdaLR
        scheduler = LambdaLR(optimizer, lambda epoch: 0.95 ** epoch)
        """,
        """
        from torch.utils.data import DataLoader
        merge = lambda batch: batch
        loader = DataLoader(dataset, collate_fn=merge)
        """,
    )
    GOOD = (
        """
        from torch.utils.data import DataLoader
        def keep(batch):
            return batch
        loader = DataLoader(dataset, collate_fn=keep)
        """,
        """
        import torch
        ordered = sorted(torch.load("a.pt", map_location="cpu"), key=lambda x: x.sum())
        """,
        """
        import torch
        class Plain:
            def __init__(self):
                self.f = lambda x: x
        """,
    )

    def check_file(self, file: File) -> Iterator[Finding]:
        if not file.nodes.of(ast.Lambda):
            return
        named = {
            a.targets[0].id: a.value
            for a in file.nodes.of(ast.Assign)
            if isinstance(a.value, ast.Lambda) and isinstance(a.targets[0], ast.Name)
        }
        for value, what in carried(file):
            found = named.get(value.id) if isinstance(value, ast.Name) else value
            if isinstance(found, ast.Lambda):
                yield self.finding(found, f"a lambda in {what} cannot be pickled", file)

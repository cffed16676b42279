"""PTM201: a lambda where it has to be pickled: workers and processes that are spawned cannot be given it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File, is_self, last_part
from ..rule import Finding, Rule

# keywords whose value travels to the workers or into a checkpoint
CARRIED = {
    "collate_fn": "the DataLoader's workers",
    "worker_init_fn": "the DataLoader's workers",
    "transform": "the DataLoader's workers",
    "transforms": "the DataLoader's workers",
    "target_transform": "the DataLoader's workers",
    "lr_lambda": "the scheduler, and with it a spawned process",
}


class UnpicklableLambda(Rule):
    code = "PTM201"
    name = "unpicklable-lambda"
    why = (
        "Pickle stores functions by name, and a lambda has none: spawned workers and processes fail to start with it, "
        "and an object that holds one cannot be saved. Define a function at the top of the module."
    )
    calls = ("Lambda", "LambdaLR", "MultiplicativeLR")

    BAD = (
        """
        from torch.utils.data import DataLoader
        loader = DataLoader(dataset, collate_fn=lambda batch: batch)
        """,
        """
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
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func) or ""
        if full.startswith("torchvision.transforms.") and call.args and isinstance(call.args[0], ast.Lambda):
            yield self.finding(
                call.args[0], "a lambda in a transform cannot be pickled for the DataLoader's workers", file
            )
        if full.startswith("torch.optim.lr_scheduler.") and len(call.args) > 1:
            given = call.args[1]
            for value in given.elts if isinstance(given, ast.List | ast.Tuple) else [given]:
                if isinstance(value, ast.Lambda):
                    yield self.finding(
                        value, "a lambda in a scheduler cannot be pickled, nor is it in its state_dict", file
                    )

    def check_file(self, file: File) -> Iterator[Finding]:
        for node in file.nodes.of(ast.Lambda):
            parent = file.nodes.parents[node]
            if isinstance(parent, ast.List | ast.Tuple):
                parent = file.nodes.parents[parent]
            if isinstance(parent, ast.keyword) and parent.arg in CARRIED:
                call = file.nodes.parents[parent]
                if isinstance(call, ast.Call) and last_part(call.func) not in ("partial", "add_argument"):
                    yield self.finding(
                        node, f"`{parent.arg}` is a lambda, which cannot be pickled for {CARRIED[parent.arg]}", file
                    )
            elif isinstance(parent, ast.Assign):
                yield from self._kept(node, parent, file)

    def _kept(self, node: ast.Lambda, assign: ast.Assign, file: File) -> Iterator[Finding]:
        target = assign.targets[0]
        if isinstance(target, ast.Attribute) and is_self(target.value):
            kind = file.classes.kind_of(node)
            if kind:
                what = "data set" if kind == "dataset" else "module"
                yield self.finding(node, f"`self.{target.attr}` is a lambda, so the {what} cannot be pickled", file)
        elif isinstance(target, ast.Name):
            for use in file.nodes.of(ast.keyword):
                value = use.value
                if use.arg in CARRIED and isinstance(value, ast.Name) and value.id == target.id:
                    yield self.finding(
                        node, f"`{target.id}` is a lambda, passed as `{use.arg}`: it cannot be pickled", file
                    )
                    return

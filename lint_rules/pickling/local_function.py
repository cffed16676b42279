"""PTM202: a function defined in a function, where it has to be pickled."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.nodes import FUNCTIONS

from ..file import File
from ..rule import Finding, Rule
from .carried import carried


class LocalFunction(Rule):
    code = "PTM202"
    name = "unpicklable-local-function"
    why = (
        "Pickle finds functions by their name in the module; one that is defined inside another cannot be found, so "
        "spawned workers and processes fail to start. Move it to the top of the module, or use functools.partial."
    )

    BAD = (
        """
        from torch.utils.data import DataLoader
        def loaders(dataset, pad):
            def collate(batch):
                return [pad(x) for x in batch]
            return DataLoader(dataset, collate_fn=collate)
        """,
        """
        import torch.multiprocessing as mp
        def main(options):
            def worker(rank):
                run(rank, options)
            mp.spawn(worker, nprocs=2)
        """,
    )
    GOOD = """
        from functools import partial
        from torch.utils.data import DataLoader
        def collate(pad, batch):
            return [pad(x) for x in batch]
        def loaders(dataset, pad):
            return DataLoader(dataset, collate_fn=partial(collate, pad))
        """

    def check_file(self, file: File) -> Iterator[Finding]:
        local: dict[str, list[ast.AST]] = {}
        for f in file.nodes.functions:
            if isinstance(file.nodes.parents[f], FUNCTIONS):
                local.setdefault(f.name, []).append(file.nodes.parents[f])
        if not local:
            return
        for value, what in carried(file):
            if isinstance(value, ast.Name) and value.id in local:
                around = set(file.nodes.ancestors(value))
                if any(home in around for home in local[value.id]):
                    yield self.finding(value, f"`{value.id}` is a local function in {what} cannot be pickled", file)

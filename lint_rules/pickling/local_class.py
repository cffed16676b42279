"""PTM208: a data set or module whose class is defined inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.nodes import FUNCTIONS

from ..file import File
from ..rule import Finding, Rule
from .missing_main_guard import STARTS


def _starts(file: File) -> Iterator[ast.Call]:
    return file.calls_named("spawn", "start_processes", "Process")


class LocalClass(Rule):
    code = "PTM208"
    name = "unpicklable-local-class"
    why = (
        "Pickle finds classes by their name in the module; instances of a class local to a function cannot be "
        "sent to spawned workers and processes. Define data sets and modules at the top of the module."
    )

    BAD = """
        import torch
        def build(size):
            class Numbers(torch.utils.data.Dataset):
                def __len__(self):
                    return size
            return Numbers()
        """
    GOOD = """
        import torch
        class Numbers(torch.utils.data.Dataset):
            def __init__(self, size):
                self.size = size
            def __len__(self):
                return self.size
        def build(size):
            return Numbers(size)
        """

    def check_class(self, node: ast.ClassDef, file: File) -> Iterator[Finding]:
        kind = file.classes.kinds.get(node)
        if not kind or not isinstance(file.nodes.parents[node], FUNCTIONS):
            return
        # a data set goes to workers; a module goes to other processes only where there are some
        if kind in ("dataset", "datamodule") or any(file.resolve(c.func) in STARTS for c in _starts(file)):
            yield self.finding(node, f"instances of {node.name}, a class local to a function, cannot be pickled", file)

"""PTM206: a generator or a running iterator in a module or data set."""

from __future__ import annotations

import ast

from ..file import File, is_self
from .held import Held


class GeneratorInState(Held):
    code = "PTM206"
    name = "generator-in-state"
    why = (
        "A generator or the iterator of a DataLoader cannot be pickled, and its position cannot be shared: make a new "
        "one in each process (in `__iter__`), or keep a list."
    )

    BAD = """
        import torch
        class Data(torch.utils.data.IterableDataset):
            def __init__(self, path):
                self.lines = (line for line in read(path))
        """
    GOOD = """
        import torch
        class Data(torch.utils.data.IterableDataset):
            def __init__(self, path):
                self.lines = [line for line in read(path)]
                self.total = sum(1 for _ in self.lines)
        """

    def held(self, value: ast.expr, file: File) -> str | None:
        if isinstance(value, ast.GeneratorExp):
            return "a generator"
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            if value.func.id == "iter" and value.args and file.loops.is_loader(value.args[0]):
                return "the iterator of a loader"
            if (None, value.func.id) in self._generators(file):
                return "a generator"
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and is_self(value.func.value):
            made_here = (file.nodes.class_of(value), value.func.attr) in self._generators(file)
            return "a generator" if made_here else None
        return None

    def _generators(self, file: File) -> set[tuple[ast.AST | None, str]]:
        """The class, if any, and the name of each function that yields."""
        found: set[tuple[ast.AST | None, str]] = set()
        for y in (*file.nodes.of(ast.Yield), *file.nodes.of(ast.YieldFrom)):
            f = file.nodes.function_of(y)
            if f is not None and not f.decorator_list:
                holder = file.nodes.parents[f]
                found.add((holder if isinstance(holder, ast.ClassDef) else None, f.name))
        return found

"""PTM414: a random split that each rank draws for itself mixes training and validation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import with_argument
from ..file import File, argument, passes_unknown
from ..rule import Finding, Rule

SEEDS = ("manual_seed", "seed_everything", "set_seed", "fix_seed", "seed_all", "set_random_seed", "setup_seed")


class RandomSplit(Rule):
    code = "PTM414"
    name = "random-split"
    why = (
        "Every process draws its own split: a sample that one rank validates on is one that another trains on, and a "
        "resumed run splits anew. Give random_split a seeded generator. On the runtime one draw before the "
        "processes meet is every process's."
    )
    fix = "unsafe"
    calls = ("random_split",)

    BAD = """
        import torch
        from torch.utils.data import random_split
        train_set, val_set = random_split(data, [900, 100])
        """
    GOOD = (
        """
        import torch
        from torch.utils.data import random_split
        train_set, val_set = random_split(data, [900, 100], generator=torch.Generator().manual_seed(0))
        """,
        """
        import torch
        torch.manual_seed(0)
        train_set, val_set = torch.utils.data.random_split(data, [900, 100])
        """,
        """
        from ptmigrate.runtime import Trainer
        from torch.utils.data import random_split
        train_set, val_set = random_split(data, [900, 100])
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if file.resolve(call.func) != "torch.utils.data.random_split" or passes_unknown(call):
            return
        if argument(call, 2, "generator") is None and not _seeds(file) and not _on_runtime(file):
            text = "each process draws its own split; pass generator=torch.Generator().manual_seed(...)"
            generator = f"generator={file.torch}.Generator().manual_seed(0)"
            yield self.finding(call, text, file, with_argument(call, generator) if file.torch else None)


def _on_runtime(file: File) -> bool:
    """Whether the file runs on the runtime, on which one draw before the processes meet is every process's."""
    taken = (a.name for s in file.nodes.of(ast.ImportFrom) if s.module == "ptmigrate.runtime" for a in s.names)
    return not {"Trainer", "Runtime"}.isdisjoint(taken)


def _seeds(file: File) -> bool:
    """Whether torch's own generator is seeded in the file; that of a `torch.Generator()` is another."""
    return any(
        not (isinstance(c.func, ast.Attribute) and seed == "manual_seed") or file.resolve(c.func) == "torch.manual_seed"
        for seed in SEEDS
        for c in file.nodes.calls.get(seed, ())
    )

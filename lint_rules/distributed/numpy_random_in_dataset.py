"""PTM415: NumPy's global generator gives every rank the same random numbers for other samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule

DRAWS = {
    "rand", "randn", "randint", "random", "random_sample", "choice", "uniform", "normal", "permutation", "shuffle",
    "beta", "binomial", "poisson", "standard_normal", "sample", "ranf", "exponential", "gamma", "laplace",
}  # fmt: skip


class NumpyRandomInDataset(Rule):
    code = "PTM415"
    name = "numpy-random-in-dataset"
    why = (
        "Workers are seeded from torch's generator, which has the same seed on all ranks, and not at all before "
        "torch 1.9: workers and ranks draw the same augmentations. Draw from torch, or from a generator seeded by "
        "rank and worker."
    )
    calls = tuple(sorted(DRAWS))

    BAD = """
        import numpy as np
        from torch.utils.data import Dataset
        class Images(Dataset):
            def __getitem__(self, i):
                return self.images[i] + np.random.randn(3)
        """
    GOOD = """
        import numpy as np
        import torch
        from torch.utils.data import Dataset
        class Images(Dataset):
            def __init__(self):
                self.order = np.random.permutation(10)
            def __getitem__(self, i):
                return self.images[i] + torch.randn(3)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if not (file.resolve(call.func) or "").startswith("numpy.random.") or file.classes.kind_of(call) != "dataset":
            return
        method = file.classes.method_of(call)
        if method is not None and method.name != "__init__" and self._draws_samples(method.name, call, file):
            text = f"`{file.source(call)}` draws the same numbers on every rank"
            yield self.finding(call, f"{text}; draw with torch", file)

    def _draws_samples(self, method: str, call: ast.Call, file: File) -> bool:
        """Whether the method runs for each sample: it is __getitem__ or __iter__, or one of them calls it."""
        if method in ("__getitem__", "__iter__", "__getitems__"):
            return True
        for other in file.nodes.calls.get(method, ()):
            caller = file.classes.method_of(other)
            if caller is not None and caller.name in ("__getitem__", "__iter__", "__getitems__"):
                return file.nodes.class_of(other) is file.nodes.class_of(call)
        return False

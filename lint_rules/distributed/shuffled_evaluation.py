"""PTM404: an evaluation that shuffles is another one each time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..data.loaders import is_loader, is_true, option, option_node, serves_evaluation
from ..edits import without_argument
from ..file import File
from ..rule import Finding, Rule


class ShuffledEvaluation(Rule):
    code = "PTM404"
    name = "shuffled-evaluation"
    why = (
        "Shuffling an evaluation draws from the random generator that training uses, and changes which samples share a "
        "batch: results differ from run to run and from one number of devices to another."
    )
    fix = "unsafe"
    calls = ("DataLoader",)

    BAD = """
        import torch
        test_loader = torch.utils.data.DataLoader(test_set, batch_size=100, shuffle=True)
        """
    GOOD = """
        import torch
        train_loader = torch.utils.data.DataLoader(train_set, batch_size=100, shuffle=True)
        test_loader = torch.utils.data.DataLoader(test_set, batch_size=100, shuffle=False)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if not is_loader(call, file) or not serves_evaluation(call, file):
            return
        if is_true(option(call, "shuffle")):
            repair = without_argument(call, option_node(call, "shuffle"))
            yield self.finding(call, "a loader for evaluation shuffles; drop shuffle=True", file, repair)
        sampler = option(call, "sampler")
        if isinstance(sampler, ast.Call) and file.resolve(sampler.func) == "torch.utils.data.RandomSampler":
            yield self.finding(call, "a loader for evaluation draws at random; drop the RandomSampler", file)

"""PTM405: an evaluation that drops its last batch does not see every sample."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..data.loaders import is_loader, is_true, option, option_node, serves_evaluation
from ..edits import without_argument
from ..file import File
from ..rule import Finding, Rule


class DroppedEvaluation(Rule):
    code = "PTM405"
    name = "dropped-evaluation"
    why = (
        "drop_last=True leaves the last samples out of the metric, on several processes up to a batch on each. The "
        "runtime evaluates each sample once, however the last batch falls."
    )
    fix = "unsafe"
    calls = ("DataLoader",)

    BAD = """
        import torch
        val_loader = torch.utils.data.DataLoader(val_set, batch_size=100, drop_last=True)
        """
    GOOD = """
        import torch
        train_loader = torch.utils.data.DataLoader(train_set, batch_size=100, drop_last=True)
        val_loader = torch.utils.data.DataLoader(val_set, batch_size=100)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if is_loader(call, file) and is_true(option(call, "drop_last")) and serves_evaluation(call, file):
            repair = without_argument(call, option_node(call, "drop_last"))
            yield self.finding(call, "a loader for evaluation drops its last batch; drop drop_last=True", file, repair)

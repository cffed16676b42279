"""PTM402: without sync_dist a metric of an evaluation is that of one rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File, is_constant, is_self, keyword, passes_unknown
from ..rule import Finding, Rule
from .guards import is_evaluation_step


class MissingSyncDist(Rule):
    code = "PTM402"
    name = "missing-sync-dist"
    why = (
        "Each rank evaluates its share of the data. Without sync_dist=True what is logged, and what checkpoints and "
        "early stopping look at, is the mean of one share."
    )
    fix = "unsafe"
    settled_by = "sync_logging"
    calls = ("log", "log_dict")

    BAD = """
        import pytorch_lightning as pl
        class Net(pl.LightningModule):
            def validation_step(self, batch, batch_idx):
                loss = self.loss(batch)
                self.log("val_loss", loss)
        """
    GOOD = """
        import pytorch_lightning as pl
        class Net(pl.LightningModule):
            def validation_step(self, batch, batch_idx):
                loss = self.loss(batch)
                self.log("val_loss", loss, sync_dist=True)
                self.log("val_accuracy", self.accuracy)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        func = call.func
        if not (isinstance(func, ast.Attribute) and is_self(func.value)) or passes_unknown(call):
            return
        given = keyword(call, "sync_dist")
        if (given is not None and not is_constant(given, False)) or keyword(call, "rank_zero_only") is not None:
            return
        method = is_evaluation_step(call, file)
        if method is not None and not _is_metric(call, file):
            yield self.finding(
                call, f"`self.{func.attr}` in {method} without sync_dist=True: one rank's share only", file
            )


def _is_metric(call: ast.Call, file: File) -> bool:
    """Whether a metric object is logged, which sums over the ranks itself: `self.accuracy`, `self.f1.compute()`."""
    value = call.args[-1] if call.args else keyword(call, "value")
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr == "compute"
    if isinstance(value, ast.Name):
        return any(
            isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and v.func.attr == "compute"
            for v in file.tensors.assigned(value)
        )
    return isinstance(value, ast.Attribute) and is_self(value.value)

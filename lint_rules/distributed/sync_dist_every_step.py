"""PTM407: sync_dist in every training step makes all ranks wait for each other to write a number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import with_argument
from ..file import File, is_constant, is_self, keyword
from ..rule import Finding, Rule


class SyncDistEveryStep(Rule):
    code = "PTM407"
    name = "sync-dist-every-step"
    why = (
        "Logging with sync_dist=True on every training step adds a collective, and a wait for the slowest rank, to "
        "each. Log the step on each rank and reduce once an epoch: on_step=False, on_epoch=True."
    )
    fix = "unsafe"
    calls = ("log", "log_dict")

    BAD = """
        import pytorch_lightning as pl
        class Net(pl.LightningModule):
            def training_step(self, batch, batch_idx):
                loss = self.loss(batch)
                self.log("train_loss", loss, sync_dist=True)
                return loss
        """
    GOOD = """
        import pytorch_lightning as pl
        class Net(pl.LightningModule):
            def training_step(self, batch, batch_idx):
                loss = self.loss(batch)
                self.log("train_loss", loss, on_step=False, on_epoch=True, sync_dist=True)
                return loss
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        func = call.func
        if not (isinstance(func, ast.Attribute) and is_self(func.value)):
            return
        if not is_constant(keyword(call, "sync_dist"), True) or is_constant(keyword(call, "on_step"), False):
            return
        method = file.classes.method_of(call)
        if method is not None and method.name == "training_step" and file.classes.kind_of(call) == "lightning":
            given = keyword(call, "on_step") is not None or keyword(call, "on_epoch") is not None
            repair = None if given or len(call.args) > 2 else with_argument(call, "on_step=False, on_epoch=True")
            text = "sync_dist=True at every training step; add on_step=False, on_epoch=True"
            yield self.finding(call, text, file, repair)

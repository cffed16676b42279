"""PTM408: logging that only some ranks reach waits for the others for ever."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File, is_constant, is_self, keyword
from ..rule import Finding, Rule
from .guards import rank_guard


class LogOnSomeRanks(Rule):
    code = "PTM408"
    name = "log-on-some-ranks"
    why = (
        "What is logged is reduced over the ranks at the end of the epoch. Under a branch that only some of them take, "
        "these wait in a collective that the others never enter: the run hangs."
    )
    calls = ("log", "log_dict")

    BAD = (
        """
        import pytorch_lightning as pl
        class Net(pl.LightningModule):
            def validation_step(self, batch, batch_idx):
                if self.trainer.is_global_zero:
                    self.log("val_loss", self.loss(batch), sync_dist=True)
        """,
        """
        import pytorch_lightning as pl
        class Net(pl.LightningModule):
            def validation_step(self, batch, batch_idx):
                loss = self.loss(batch)
                if loss > 1:
                    self.log("val_large_loss", loss, sync_dist=True)
        """,
    )
    GOOD = """
        import pytorch_lightning as pl
        class Net(pl.LightningModule):
            def validation_step(self, batch, batch_idx):
                loss = self.loss(batch)
                self.log("val_loss", loss, sync_dist=True)
                if self.trainer.is_global_zero:
                    self.log("first", loss, rank_zero_only=True)
                if self.hparams.verbose:
                    self.log("more", loss, sync_dist=True)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        func = call.func
        if not (isinstance(func, ast.Attribute) and is_self(func.value)) or keyword(call, "rank_zero_only") is not None:
            return
        if file.classes.kind_of(call) != "lightning":
            return
        if rank_guard(call, file) is not None:
            yield self.finding(call, "logged on some ranks only: the others never join the reduction", file)
        elif is_constant(keyword(call, "sync_dist"), True):
            branch = _branch_on_data(call, file)
            if branch is not None:
                text = f"logged where `{file.source(branch)}`, which ranks may answer differently"
                yield self.finding(call, f"{text}: they wait for each other", file)


def _branch_on_data(call: ast.Call, file: File) -> ast.expr | None:
    """The test of a branch that compares a value computed in this step."""
    child: ast.AST = call
    for up in file.nodes.ancestors(call):
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        if isinstance(up, ast.If) and child is not up.test and _is_on_data(up.test, file):
            return up.test
        child = up
    return None


def _is_on_data(test: ast.expr, file: File) -> bool:
    compared = [v for n in ast.walk(test) if isinstance(n, ast.Compare) for v in (n.left, *n.comparators)]
    for value in compared:
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "item":
            value = value.func.value
        if isinstance(value, ast.Name) and any(isinstance(v, ast.Call) for v in file.tensors.assigned(value)):
            return True
    return False

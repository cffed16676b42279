"""PTM408: logging that only some ranks reach waits for the others for ever."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.nodes import walk

from ..about.classes import STEPS
from ..file import File, is_constant, is_self, keyword, last_part
from ..rule import Finding, Rule
from .guards import rank_guard

SHAPES = {
    "size",
    "dim",
    "ndimension",
    "len",
    "numel",
    "get",
    "isinstance",
    "hasattr",
    "int",
    "getattr",
    "is_floating_point",
}


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
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        if isinstance(up, ast.If) and child is not up.test and _is_on_data(up.test, file):
            return up.test
        child = up
    return None


def _is_on_data(test: ast.expr, file: File) -> bool:
    """Whether a test compares, or asks for the truth of, what was computed from this rank's batch."""
    method = file.classes.method_of(test)
    given = _from_batch(method) if method is not None else set()
    for value in _asked(test):
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            value = value.func.value
        if isinstance(value, ast.Name):
            computed = any(isinstance(v, ast.Call) and not _is_plain(v) for v in file.tensors.assigned(value))
            if value.id in given or computed:
                return True
    return False


def _asked(test: ast.expr) -> list[ast.expr]:
    """The values that a test looks at; `is None` and what has to do with shapes and types look at none."""
    if isinstance(test, ast.BoolOp):
        return [value for part in test.values for value in _asked(part)]
    if isinstance(test, ast.UnaryOp):
        return _asked(test.operand)
    if isinstance(test, ast.Compare):
        if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in test.ops):
            return []
        return [value for side in (test.left, *test.comparators) for value in _asked(side)]
    if isinstance(test, ast.Call):
        last = last_part(test.func)
        if last in SHAPES or isinstance(test.func, ast.Name):
            return []
        return [test.args[0] if _is_function_of_torch(test) and test.args else test]
    return [test] if isinstance(test, ast.Name) else []


def _is_function_of_torch(call: ast.Call) -> bool:
    """`torch.isnan(loss)`: what is asked about is the argument."""
    return (
        isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "torch"
    )


def _is_plain(call: ast.Call) -> bool:
    """What every rank computes alike: sizes, counts of batches, options."""
    return last_part(call.func) in SHAPES or isinstance(call.func, ast.Name)


def _from_batch(method: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names that a step's batch goes into, directly or by unpacking."""
    if method.name not in STEPS or len(method.args.args) < 2:
        return set()
    found = {method.args.args[1].arg}
    for n in walk(method, ast.Assign):
        if isinstance(n.value, ast.Name) and n.value.id in found:
            found.update(t.id for target in n.targets for t in walk(target, ast.Name))
    return found

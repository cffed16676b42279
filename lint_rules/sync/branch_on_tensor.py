"""PTM307: an `if` on a tensor reads it, and the host waits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule
from .where import every_step, where

Decision = ast.If | ast.While | ast.IfExp | ast.Assert


class BranchOnTensor(Rule):
    code = "PTM307"
    name = "branch-on-tensor-in-hot-loop"
    why = (
        "Python has to know the value to take the branch, so the host waits for the device at every step; processes "
        "that see different values take different branches. Use `torch.where`, or look every n-th step."
    )

    BAD = (
        """
        import torch
        for x, y in loader:
            loss = criterion(model(x), y)
            if torch.isnan(loss):
                continue
            loss.backward()
        """,
        """
        import torch
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            if loss < best and verbose:
                best = loss
        """,
    )
    GOOD = """
        import torch
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            if loss is None or x.size(0) < 2:
                continue
            loss.backward()
            if i % 100 == 0 and torch.isnan(loss):
                break
        """

    def check_decision(self, decision: Decision, file: File) -> Iterator[Finding]:
        hot = every_step(decision.test, file)
        if hot is None or file.loops.is_modulo(decision.test):
            return
        for part in _parts(decision.test):
            if _may_be_tensor(part) and file.tensors.is_tensor(part):
                yield self.finding(part, f"`{file.source(part)}` is read at every step of {where(hot)}", file)
                return


def _parts(test: ast.expr) -> list[ast.expr]:
    if isinstance(test, ast.BoolOp):
        return [part for value in test.values for part in _parts(value)]
    return _parts(test.operand) if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else [test]


def _may_be_tensor(test: ast.expr) -> bool:
    return isinstance(test, (ast.Compare, ast.Call, ast.Name))

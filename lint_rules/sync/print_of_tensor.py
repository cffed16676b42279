"""PTM308: printing a tensor reads it, and the host waits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.arguments import given_to

from ..file import File, last_part
from ..rule import Finding, Rule
from .where import every_step, where

WRITES = ("add_scalar", "add_scalars", "log")


class PrintOfTensor(Rule):
    code = "PTM308"
    name = "print-of-tensor-in-hot-loop"
    why = (
        "To print a tensor its values are copied to the host, which waits for the device at every step. "
        "Print every n-th step."
    )
    calls = ("print", "write", "set_postfix", "set_description", "info", "debug", "add_scalar", "add_scalars", "log")

    BAD = (
        """
        import torch
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            print("loss", loss)
        """,
        """
        import torch
        for x, y in tqdm(loader):
            loss = criterion(model(x), y)
            loss.backward()
            print(f"loss {loss:.3f}")
        """,
    )
    GOOD = """
        import torch
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            loss.backward()
            if i % 100 == 0:
                print("loss", loss)
            print("shape", x.shape)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if last_part(call.func) == "log" and file.resolve(call.func) not in ("wandb.log", "mlflow.log_metric"):
            return
        values = [v for a in given_to(call) for v in _shown(a)]
        if not values:
            return
        hot = every_step(call, file)
        if hot is None:
            return
        for value in values:
            if file.tensors.is_tensor(value):
                doing = "printed" if last_part(call.func) not in WRITES else "written as a number"
                text = f"`{file.source(value)}` is {doing} at every step of {where(hot)}"
                yield self.finding(call, text, file)
                return


def _shown(node: ast.expr) -> list[ast.expr]:
    """The values that are turned into text: of an f-string, of `%`, of `.format(...)`."""
    if isinstance(node, ast.JoinedStr):
        return [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
        return list(node.right.elts) if isinstance(node.right, ast.Tuple) else [node.right]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return given_to(node)
    return list(node.values) if isinstance(node, ast.Dict) else [node]

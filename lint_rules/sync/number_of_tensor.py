"""PTM306: `float(loss)` is `loss.item()` by another name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule
from .where import every_step, where


class NumberOfTensor(Rule):
    code = "PTM306"
    name = "number-of-tensor-in-hot-loop"
    why = (
        "`float()`, `int()` and `bool()` of a tensor wait for the device as `.item()` does; at every step this keeps "
        "it idle. Keep the tensor, and read it after the loop or every n-th step."
    )
    calls = ("float", "int", "bool")

    BAD = """
        import torch
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            total += float(loss)
        """
    GOOD = """
        import torch
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            total += loss.detach()
            seen += int(x.size(0)) + float(rate)
        print(float(total))
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if not isinstance(call.func, ast.Name) or len(call.args) != 1:
            return
        hot = every_step(call, file)
        if hot is not None and file.tensors.is_tensor(call.args[0]):
            yield self.finding(call, f"`{file.source(call)}` makes the host wait at every step of {where(hot)}", file)

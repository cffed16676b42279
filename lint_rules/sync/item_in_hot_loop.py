"""PTM301: reading a tensor as a number at every step makes the host wait for the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import Repair, renamed
from ..file import File
from ..rule import Finding, Rule
from .where import copies_nothing, every_step, is_host_value, where


class ItemInHotLoop(Rule):
    code = "PTM301"
    name = "item-in-hot-loop"
    why = (
        "`.item()` waits until the device has caught up; at every step this keeps it idle. "
        "Add up tensors (`total += loss.detach()`) and read the number once, or only every n-th step."
    )
    fix = "unsafe"
    calls = ("item",)

    BAD = (
        """
        import torch
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            total += loss.item()
        """,
        """
        import torch
        def test(model, loader):
            with torch.no_grad():
                for x, y in loader:
                    correct += (model(x).argmax(1) == y).sum().item()
        """,
    )
    GOOD = (
        """
        import torch
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            total += loss.detach()
        print(total.item())
        """,
        """
        import torch
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            loss.backward()
            if i % 100 == 0:
                print(loss.item())
        """,
        """
        import torch
        class Shop:
            def item(self):
                return "a tensor"
        for x, y in loader:
            criterion(model(x), y).backward()
            print(Shop().item())
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if call.args or call.keywords or not isinstance(call.func, ast.Attribute):
            return
        hot = every_step(call, file)
        if hot is not None and not is_host_value(call.func.value, file) and not copies_nothing(call.func, file):
            text = f"`{file.source(call)}` makes the host wait at every step of {where(hot)}"
            yield self.finding(call, text, file, _kept_as_tensor(call, file))


def _kept_as_tensor(call: ast.Call, file: File) -> Repair | None:
    """`total += loss.item() * n`: the sum of tensors is a tensor, read once after the loop."""
    parent = file.nodes.parents[call]
    while isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Mult, ast.Div)):
        parent = file.nodes.parents[parent]
    adds = isinstance(parent, ast.AugAssign) and isinstance(parent.op, ast.Add) and isinstance(parent.target, ast.Name)
    return renamed(call.func, "detach") if adds and isinstance(call.func, ast.Attribute) else None

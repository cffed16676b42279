"""What PTM302 to PTM305 share: a method that copies a tensor to the host, called at every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File, argument, keyword
from ..rule import Finding, Rule
from .where import copies_nothing, every_step, is_host_value, where

WAITING = {"item", "cpu", "numpy", "tolist"}


class Copying(Rule):
    """A rule about one of the methods; of `x.cpu().numpy()` only the last call is told."""

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if not is_copy(call, file):
            return
        hot = every_step(call, file)
        if hot is not None:
            yield self.finding(call, f"`{file.source(call)}` makes the host wait at every step of {where(hot)}", file)


def is_copy(call: ast.Call, file: File) -> bool:
    """A call such as `x.cpu()` of something that may be on the device."""
    if not isinstance(call.func, ast.Attribute) or file.resolve(call.func) is not None:
        return False
    if call.func.attr == "to":
        if not _goes_to_cpu(call) or keyword(call, "non_blocking") is not None:
            return False
    elif call.args:
        return False
    if copies_nothing(call.func, file) or is_host_value(call.func.value, file):
        return False
    if _is_copied_before(call.func.value) or _is_module(call, file):
        return False
    node: ast.AST = call
    for up in file.nodes.ancestors(call):
        if isinstance(up, ast.Attribute):
            if up.attr in WAITING:
                return False
        elif not (
            isinstance(up, (ast.Call, ast.Subscript))
            and node in (getattr(up, "func", None), getattr(up, "value", None))
        ):
            break
        node = up
    return True


def _goes_to_cpu(call: ast.Call) -> bool:
    device = argument(call, 0, "device")
    return isinstance(device, ast.Constant) and device.value == "cpu"


def _is_copied_before(node: ast.expr) -> bool:
    """`x.cpu().sum().item()` waits once."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("numpy", "tolist"):
                return True
            node = node.func
        else:
            node = node.value
    return False


def _is_module(call: ast.Call, file: File) -> bool:
    """`model.cpu()` moves a module."""
    func = call.func
    return (
        isinstance(func, ast.Attribute)
        and func.attr in ("cpu", "to")
        and not isinstance(file.nodes.parents.get(call), ast.Attribute)
        and isinstance(file.nodes.parents.get(call), ast.Expr)
    )

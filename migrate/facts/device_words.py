"""Expressions that say by themselves that they are a device: "cuda:%d" % gpu, a rank, a number."""

from __future__ import annotations

import ast
import re

from .nodes import walk

# `.to(rank)`: a number says which device
INDEX_NAME = re.compile(
    r"((local|global)?_?rank|gpu(_?(id|idx|index|num))?|device_?(id|idx|index)|dev_?id)\Z", re.IGNORECASE
)


def first_of(node: ast.expr) -> ast.expr:
    """`torch.ones(1)` of `torch.ones(1).double()`; what a tensor says of its device is no tensor."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr != "get_device":
        if not isinstance(node.func.value, ast.Call):
            break
        node = node.func.value
    return node


def starts_device(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("cuda:")


def formats_device(call: ast.Call) -> bool:
    """`"cuda:{}".format(gpu)`"""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "format" and starts_device(call.func.value)


def is_index(node: ast.expr) -> bool:
    """The first argument of `.to()` as a device's number: a literal, a name that says so, or this process's rank."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and not isinstance(node.value, bool)
    if isinstance(node, ast.Call):  # int(os.environ["LOCAL_RANK"]), dist.get_rank()
        keys = [n.value for n in walk(node) if isinstance(n, ast.Constant)]
        return "LOCAL_RANK" in keys or ast.unparse(node.func).endswith(("get_rank", "get_local_rank"))
    if isinstance(node, ast.Subscript):  # device_ids[0], os.environ["LOCAL_RANK"]
        return bool(re.search(r"(device|gpu)_?ids?$", ast.unparse(node.value), re.IGNORECASE))
    last = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return bool(INDEX_NAME.match(last))


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None

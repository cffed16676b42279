"""Expressions that say by themselves that they are a device: "cuda:%d" % gpu, a rank, a number."""

from __future__ import annotations

import ast
import re

from .nodes import walk
from .spelled import spelled

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


def number_of_card(node: ast.expr) -> ast.expr | None:
    """`gpu` of `f"cuda:{gpu}"`, `"cuda:%d" % gpu`, `"cuda:{}".format(gpu)` and `"cuda:" + str(gpu)`."""
    if isinstance(node, ast.JoinedStr):
        text, *rest = node.values
        value = rest[0] if len(rest) == 1 and isinstance(text, ast.Constant) and text.value == "cuda:" else None
        return value.value if isinstance(value, ast.FormattedValue) and value.format_spec is None else None
    if isinstance(node, ast.Call):
        return node.args[0] if formats_device(node) and len(node.args) == 1 else None
    if not (isinstance(node, ast.BinOp) and starts_device(node.left)):
        return None
    if isinstance(node.op, ast.Add):
        made = node.right
        return made.args[0] if isinstance(made, ast.Call) and spelled(made.func) == "str" and made.args else None
    return node.right if isinstance(node.op, ast.Mod) and not isinstance(node.right, ast.Tuple) else None


def is_index(node: ast.expr) -> bool:
    """The first argument of `.to()` as a device's number: a literal, a name that says so, or this process's rank."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and not isinstance(node.value, bool)
    if isinstance(node, ast.Call):  # int(os.environ["LOCAL_RANK"]), dist.get_rank()
        keys = [n.value for n in walk(node) if isinstance(n, ast.Constant)]
        return "LOCAL_RANK" in keys or spelled(node.func).endswith(("get_rank", "get_local_rank"))
    if isinstance(node, ast.Subscript):  # device_ids[0], os.environ["LOCAL_RANK"]
        return bool(re.search(r"(device|gpu)_?ids?$", spelled(node.value), re.IGNORECASE))
    last = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return bool(INDEX_NAME.match(last))


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None

"""T1: what is written with and without moves to a device, and what of a `.to()` says something else."""

from __future__ import annotations

import ast
import copy
from typing import Any

from ..facts.plain import is_bare_variable
from ..facts.script import Facts


def plain(facts: Facts, s: ast.stmt | ast.expr) -> str:
    """A statement or an expression without its moves; nothing for a statement that only moves."""

    def rebuilt(node: Any) -> Any:
        if isinstance(node, list):
            return [rebuilt(n) for n in node]
        if not isinstance(node, ast.AST):
            return node
        while isinstance(node, ast.Call) and not what_stays(facts, node) and is_wrapper(node):
            node = node.args[0] if is_bare_variable(facts, node) else facts.devices.moved(node)
        new = copy.copy(node)
        for name, value in ast.iter_fields(node):
            setattr(new, name, rebuilt(value))
        return new

    def is_wrapper(node: ast.Call) -> bool:
        return is_bare_variable(facts, node) or facts.devices.moved(node) is not None

    left = rebuilt(s)
    alone = isinstance(left, ast.Expr) and isinstance(left.value, (ast.Name, ast.Attribute))
    itself = isinstance(left, ast.Assign) and [ast.unparse(t) for t in left.targets] == [ast.unparse(left.value)]
    return "" if alone or itself else ast.unparse(left)


def what_stays(facts: Facts, call: ast.Call) -> list[int]:
    """The places, in the text, of the arguments of a `.to()` that do not say where."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "to"):
        return []
    where = facts.devices.device_arguments(call)
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    return [i for i, a in enumerate(arguments) if a not in where and not _is_copy(a)]


def _is_copy(argument: ast.expr | ast.keyword) -> bool:
    """`copy=False`, and `non_blocking` by position, which are a boolean."""
    value: ast.AST = argument
    if isinstance(argument, ast.keyword) and argument.arg == "copy":
        value = argument.value
    return isinstance(value, ast.Constant) and value.value is False

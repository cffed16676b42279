"""`self.x` of a plain object that is made of tensors the script makes: nothing but the script places it.

`class Data: def __init__(self, x): self.x = x.cuda()`, `Data(torch.randn(8, 3))`
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import argument
from .held import class_named, is_plain

if TYPE_CHECKING:
    from .script import Facts


def is_made_for_object(facts: Facts, node: ast.expr) -> bool:
    """Whether a parameter of the constructor of a plain class, or an attribute that keeps it, is given what is made."""
    c = next((up for up in facts.scopes.ancestors(node) if isinstance(up, ast.ClassDef)), None)
    init = facts.classes.methods(c).get("__init__") if c is not None else None
    if not isinstance(init, ast.FunctionDef):
        return False
    return any(is_parameter_made(facts, init, name) for name in _parameters(facts, node, init))


def is_parameter_made(facts: Facts, f: ast.FunctionDef, name: str) -> bool:
    """Whether calls of a plain class give a parameter of its constructor a tensor that is made in this file."""
    c = facts.classes.holder(f)
    if c is None or not is_plain(facts, c):
        return False
    return any(facts.tensors.made(value) for value in given_to_constructor(facts, f, name))


def given_to_constructor(facts: Facts, f: ast.FunctionDef, name: str) -> list[ast.expr]:
    """What the calls of a class in this file give a parameter of its constructor; nothing of any other function."""
    c = facts.classes.holder(f)
    if f.name != "__init__" or c is None:
        return []
    calls = [call for call in facts.walk(ast.Call) if class_named(facts, call.func) is c]
    given = [argument(call, f, name, True) for call in calls]
    return [value for value in given if value is not None]


def _parameters(facts: Facts, node: ast.expr, init: ast.FunctionDef) -> list[str]:
    """The parameter that a node is, or those that the attributes which it names may have."""
    own = facts.scopes.by_node[init]
    if isinstance(node, ast.Name):
        return [node.id] if facts.scopes.scope_of(node) is own and node.id in own.params else []
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"):
        return []
    values = facts.devices.attribute_values.get(node.attr, [])
    return [v.id for v in values if isinstance(v, ast.Name) and v.id in own.params]

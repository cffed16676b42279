"""What a constructor registers with its module."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts

LISTS = {"torch.nn.ParameterList", "torch.nn.ParameterDict"}
# what makes a tensor of numbers alone, or of another that is made beside it
MAKERS = {"zeros", "ones", "full", "empty", "rand", "randn", "randint", "randperm", "arange", "linspace", "eye"}
MAKERS |= {"tensor", "Tensor", "FloatTensor", "DoubleTensor", "from_numpy", "normal"}
OF_ONE = ("torch.", "math.", "numpy.")


def is_registered(facts: Facts, node: ast.expr) -> bool:
    """What a constructor hands to `self.register_buffer(...)` or keeps as a Parameter moves with its module."""
    parents: dict[ast.AST, ast.AST] = facts.scopes.parents
    child: ast.AST = node
    up = parents.get(node)
    while isinstance(up, ast.Attribute) or (isinstance(up, ast.Call) and up.func is child):
        child, up = up, parents.get(up)
    keeper = _parameter_of(facts, child)
    if keeper is None:
        if isinstance(up, ast.keyword):
            child, up = up, parents.get(up)
        if not isinstance(up, ast.Call) or child is up.func:
            return False
        keeper = up
    f = next((u for u in facts.scopes.ancestors(keeper) if isinstance(u, ast.FunctionDef)), None)
    if f is None or f.name != "__init__" or facts.classes.holder(f) not in facts.classes.modules:
        return False
    if facts.names.resolve(keeper.func) == "torch.nn.Parameter":
        return _is_kept(facts, keeper)
    func = keeper.func
    return isinstance(func, ast.Attribute) and func.attr == "register_buffer" and _is_self(func.value)


def _is_kept(facts: Facts, parameter: ast.Call) -> bool:
    """`self.w = nn.Parameter(...)`, `self.ws.append(nn.Parameter(...))` of a ParameterList, and in what makes one."""
    s = facts.scopes.parents.get(parameter)
    if isinstance(s, ast.Call) and isinstance(s.func, ast.Attribute):
        if s.func.attr == "register_parameter":
            return _is_self(s.func.value)
        if s.func.attr == "append":
            return _is_list_of_module(facts, s.func.value)
    while isinstance(s, (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.Dict, ast.DictComp)):
        s = facts.scopes.parents.get(s)
        if isinstance(s, ast.Call) and facts.names.resolve(s.func) in LISTS:
            s = facts.scopes.parents.get(s)
            break
    targets = s.targets if isinstance(s, ast.Assign) else []
    return bool(targets) and all(isinstance(t, ast.Attribute) and _is_self(t.value) for t in targets)


def _is_list_of_module(facts: Facts, node: ast.expr) -> bool:
    """`self.ws` of `self.ws = nn.ParameterList()`"""
    if not (isinstance(node, ast.Attribute) and _is_self(node.value)):
        return False
    c = next((u for u in facts.scopes.ancestors(node) if isinstance(u, ast.ClassDef)), None)
    named = ast.unparse(node)
    assigned = (a for a in walk(c, ast.Assign)) if c is not None else ()
    made = [a.value for a in assigned if any(ast.unparse(t) == named for t in a.targets)]
    return bool(made) and all(isinstance(v, ast.Call) and facts.names.resolve(v.func) in LISTS for v in made)


def _parameter_of(facts: Facts, part: ast.AST) -> ast.Call | None:
    """`nn.Parameter(torch.fmod(part, 2) * 0.1)`: where all that the part meets is made there, too."""
    up = facts.scopes.parents.get(part)
    while isinstance(up, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Attribute, ast.keyword)):
        if isinstance(up, ast.Call) and facts.names.resolve(up.func) == "torch.nn.Parameter":
            return up if part in up.args and _is_made_here(facts, part) else None
        part, up = up, facts.scopes.parents.get(up)
    return None


def _is_made_here(facts: Facts, value: ast.AST) -> bool:
    """Whether a value is made of nothing but numbers."""
    if isinstance(value, ast.Call):
        full = facts.names.resolve(value.func)
        if full is not None and full.startswith(OF_ONE):
            numbers = full.rpartition(".")[2] in MAKERS or not full.startswith("torch.")
            return numbers or all(_is_made_here(facts, a) for a in value.args)
        moved = facts.devices.moved(value)
        if moved is not None:
            return _is_made_here(facts, moved)
        method = isinstance(value.func, ast.Attribute) and _is_made_here(facts, value.func.value)
        return method and all(_is_made_here(facts, a) for a in value.args)
    if isinstance(value, ast.BinOp):
        return _is_made_here(facts, value.left) and _is_made_here(facts, value.right)
    if isinstance(value, ast.UnaryOp):
        return _is_made_here(facts, value.operand)
    return isinstance(value, ast.Constant)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"

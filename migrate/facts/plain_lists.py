"""Modules that a module keeps in a plain list or dictionary, or in `__dict__`: where it goes they do not.

`self.layers = [nn.Linear(2, 2).cuda() for _ in range(3)]`; an `nn.ModuleList` of the same takes them along.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .nodes import walk
from .spelled import spelled

if TYPE_CHECKING:
    from .script import Facts

HOLDS = ast.List | ast.Tuple | ast.Set | ast.Dict | ast.ListComp | ast.SetComp | ast.DictComp | ast.IfExp
ADDS = ("append", "insert", "setdefault")
LOOKS = ("len", "zip", "enumerate", "range", "reversed", "print")
HIDDEN = "self.__dict__"
REGISTERS = {"add_module", "register_module", "setattr"}


def in_plain_list(facts: Facts, node: ast.expr) -> bool:
    """Whether what a module's method makes ends in a list or dictionary of an attribute, and in no module."""
    c = next((u for u in facts.scopes.ancestors(node) if isinstance(u, ast.ClassDef)), None)
    return c is not None and c in facts.classes.modules and ends_in_list(facts, node, c)


def ends_in_list(facts: Facts, node: ast.expr, c: ast.ClassDef) -> bool:
    """The same of what a method of any class makes."""
    first = _list_of(facts, node)
    if first is None or any(_called(n) in REGISTERS for n in walk(c)):
        return False
    names: set[str] = set()
    pending: list[str] = [first]
    while pending:
        name = pending.pop()
        if name in names:
            continue
        names.add(name)
        for read in _reads(c, name):
            if _is_registered(facts, read):
                return False
            up = facts.scopes.parents.get(read)
            if isinstance(up, ast.Assign) and up.value is read:  # self.layers = layers
                pending += [spelled(t) for t in up.targets]
    return any(name.startswith("self.") for name in names)


def given_to_plain_list(facts: Facts, node: ast.expr) -> bool:
    """The teacher of `self.__dict__["teacher"] = teacher.cuda()`, which the module is given where it is made; the a of
    `self.masks = [a.cuda() for a in masks]`, too.
    """
    f = next(facts.scopes.functions_around(node), None)
    if not isinstance(node, ast.Name) or not isinstance(f, ast.FunctionDef):
        return False
    made = f.name == "__init__" or _list_of(facts, node) == HIDDEN
    generator = facts.scopes.generator_of(node)
    given = {node.id} if generator is None else {n.id for n in walk(generator.iter, ast.Name)}
    return made and not given.isdisjoint(facts.scopes.by_node[f].params) and in_plain_list(facts, node)


def _list_of(facts: Facts, node: ast.expr) -> str | None:
    """The name or attribute of the list that what a node makes, moved or not, is put into."""
    child: ast.AST = node
    up = facts.scopes.parents.get(node)
    while (isinstance(up, ast.Attribute) and up.value is child) or (isinstance(up, ast.Call) and up.func is child):
        child, up = up, facts.scopes.parents.get(up)
    inside = False
    while isinstance(up, HOLDS):
        inside = inside or not isinstance(up, ast.IfExp)
        child, up = up, facts.scopes.parents.get(up)
    if isinstance(up, ast.Assign) and len(up.targets) == 1:
        target = up.targets[0]
        if isinstance(target, ast.Subscript) and not inside:  # self.heads["a"] = nn.Linear(2, 2)
            return spelled(target.value)
        return spelled(target) if inside and isinstance(target, (ast.Name, ast.Attribute)) else None
    added = isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr in ADDS
    if isinstance(up, ast.Call) and spelled(up.func) == "object.__setattr__" and spelled(up.args[0]) == "self":
        return HIDDEN
    return spelled(up.func.value) if added else None  # type: ignore[union-attr]


def _reads(c: ast.ClassDef, name: str) -> list[ast.expr]:
    kind = ast.Attribute if "." in name else ast.Name
    return [n for n in walk(c) if isinstance(n, kind) and isinstance(n.ctx, ast.Load) and spelled(n) == name]


def _is_registered(facts: Facts, read: ast.expr) -> bool:
    """`nn.ModuleList(layers)`, `nn.Sequential(*layers)`, and whatever else is handed the list."""
    child, up = read, facts.scopes.parents.get(read)
    while isinstance(up, (ast.Starred, ast.keyword, ast.BinOp, ast.Subscript, HOLDS)):
        child, up = up, facts.scopes.parents.get(up)  # type: ignore[assignment]
    looks = isinstance(up, ast.Call) and isinstance(up.func, ast.Name) and up.func.id in LOOKS
    return isinstance(up, ast.Call) and up.func is not child and not looks


def _called(node: ast.AST) -> str | None:
    f = node.func if isinstance(node, ast.Call) else None
    return f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", None)

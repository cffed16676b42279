"""What stands below backward() and changes in place what the loss is computed of: `bank[idx] = z.detach()`.

A training_step runs it before backward(), which then misses what the graph has saved.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..facts.nodes import walk
from .mixes import feeding


def changed_behind(body: list[ast.stmt], at: int) -> ast.stmt | None:
    """The first such statement of a batch loop, whose backward() is at a place of it."""
    feeds = feeding(body)
    read, asked = set[str](), set[str]()  # `asked`: objects of which a part is read, or what a call of them gives
    for s in (s for s in feeds if s not in body[at:]):
        for n in walk(s):
            if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load) and (name := _root(n)):
                read.add(name)
                asked.update({name} if isinstance(n, ast.Attribute) and n.attr != name.partition(".")[2] else ())
            elif isinstance(n, ast.Call) and (name := _root(n.func)):
                asked.add(name)
    return next((s for s in body[at + 1 :] if _changes(s, read, asked)), None)


def _changes(s: ast.stmt, read: set[str], asked: set[str]) -> bool:
    for n in walk(s):
        if isinstance(n, (ast.Assign, ast.AugAssign)):
            targets: Iterable[ast.expr] = n.targets if isinstance(n, ast.Assign) else [n.target]
            if any(isinstance(t, ast.Subscript) and _root(t) in read for t in targets):
                return True
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
            in_place = n.func.attr.endswith("_") and not n.func.attr.endswith("__")
            if in_place and _root(n.func.value) in read:
                return True
        if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and isinstance(n.value.func, ast.Attribute):
            of = n.value.func.value
            if isinstance(of, (ast.Name, ast.Attribute)) and _root(of) in asked:
                return True
    return False


def _root(node: ast.expr) -> str:
    """`bank` of `bank.vectors[i]`, `self.bank` of `self.bank.vectors`; empty where it is no name."""
    attribute = ""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        attribute = node.attr if isinstance(node, ast.Attribute) else attribute
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name):
        return ""
    return f"self.{attribute}" if node.id == "self" and attribute else node.id

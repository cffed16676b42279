"""What stands below backward() and changes in place what the graph has saved: `bank[idx] = z.detach()`.

A training_step runs it before backward(), which then fails.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.script import Facts
from .mixes import feeding

VIEWS = {"t", "view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "expand", "detach", "flatten"}


def changed_behind(facts: Facts, body: list[ast.stmt], at: int) -> ast.stmt | None:
    """The first such statement of a batch loop, whose backward() is at a place of it."""
    feeds = [s for s in feeding(body) if s not in body[at:]]
    saved = {_root(n) for s in feeds for n in walk(s, ast.Name) if isinstance(n.ctx, ast.Load) and _is_saved(facts, n)}
    return next((s for s in body[at + 1 :] if any(name in saved for name in _changed(s))), None)


def _is_saved(facts: Facts, name: ast.Name) -> bool:
    """Whether what is computed of it may need it again: not of `out - bank[idx]`, nor of `0.1 * bank[idx]`."""
    node: ast.expr = name
    parents = facts.scopes.parents
    while True:
        up = parents.get(node)
        call = parents.get(up) if isinstance(up, ast.Attribute) else None
        if isinstance(up, ast.Attribute) and isinstance(call, ast.Call) and call.func is up:
            if up.attr not in VIEWS:
                return True
            node = call
        elif isinstance(up, (ast.Attribute, ast.Subscript)) and up.value is node:
            node = up
        else:
            break
    if not isinstance(up, ast.BinOp):
        return not isinstance(up, ast.Subscript)  # an index
    other = up.right if up.left is node else up.left
    return not isinstance(up.op, (ast.Add, ast.Sub)) and not isinstance(other, ast.Constant)


def _changed(s: ast.stmt) -> Iterator[str]:
    """The names of what a statement changes in place, and of objects that it calls a method of."""
    for n in walk(s):
        if isinstance(n, (ast.Assign, ast.AugAssign)):
            for t in n.targets if isinstance(n, ast.Assign) else [n.target]:
                entry = isinstance(t, ast.Subscript) and isinstance(getattr(t.slice, "value", None), str)
                if isinstance(t, ast.Subscript) and not entry:  # of a dictionary
                    yield _root(t)
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
            of: ast.expr = n.func.value
            while isinstance(of, ast.Call) and isinstance(of.func, ast.Attribute) and of.func.attr.endswith("_"):
                of = of.func.value
            in_place = n.func.attr.endswith("_") and not n.func.attr.endswith("__")
            if isinstance(of, (ast.Name, ast.Attribute, ast.Subscript)) and (in_place or _is_alone(s, n)):
                yield _root(of)


def _is_alone(s: ast.stmt, call: ast.Call) -> bool:
    """`bank.update(idx, z)`, of which nothing takes what it gives."""
    return any(e.value is call for e in walk(s, ast.Expr))


def _root(node: ast.expr) -> str:
    """`bank` of `bank.vectors[i]`; empty where it is no name, or the script's own object."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) and node.id != "self" else ""

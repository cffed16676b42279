"""A mean along a dimension that is the loss itself, `loss = -net.log_prob(x).mean(0)`: what is differentiated is one
number, so it is the mean over all that there was, as many for each sample.
"""

from __future__ import annotations

import ast

from ..facts.arguments import argument_at
from ..facts.nodes import walk
from ..facts.script import Facts

ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)


def is_mean_along(facts: Facts, node: ast.AST) -> bool:
    """`x.mean(0)`, `torch.mean(x, dim=0)`"""
    f = node.func if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(f, ast.Attribute) or f.attr != "mean":
        return False
    given = facts.names.resolve(f) == "torch.mean"
    along = argument_at(node, "dim", 1 if given else 0)
    return along is not None and len(node.args) + len(node.keywords) == 1 + given


def is_the_loss(facts: Facts, node: ast.AST, body: list[ast.stmt], depth: int = 0) -> bool:
    """Whether backward() is called on a value, or on what it is added to or weighed by: none of it has more numbers."""
    up = facts.scopes.parents.get(node)
    while isinstance(up, ast.UnaryOp) or (isinstance(up, ast.BinOp) and isinstance(up.op, ARITHMETIC)):
        node = up
        up = facts.scopes.parents.get(node)
    match up:
        case ast.Attribute(attr="backward"):
            return True
        case ast.Call(func=ast.Attribute(attr="scale")) if node in up.args:
            return is_the_loss(facts, up, body, depth)
        case (
            ast.Assign(targets=[ast.Name() as name])
            | ast.AugAssign(op=ast.Add() | ast.Sub(), target=ast.Name() as name)
        ):
            if depth > 4 or up.value is not node or not _given_once(name.id, body):
                return False
            home = facts.scopes.scope_of(name).lookup(name.id)
            reads = facts.scopes.reads(name.id, home) if home is not None else ()
            within = {n for s in body for n in walk(s, ast.Name)}
            return any(is_the_loss(facts, r, body, depth + 1) for r in reads if r in within)
    return False


def _given_once(name: str, body: list[ast.stmt]) -> bool:
    """Whether a step gives a name one value, which it may add to."""
    stores = [n for s in body for n in walk(s, ast.Name) if n.id == name and not isinstance(n.ctx, ast.Load)]
    added = {n.target for s in body for n in walk(s, ast.AugAssign) if isinstance(n.op, (ast.Add, ast.Sub))}
    return len([n for n in stores if n not in added]) == 1

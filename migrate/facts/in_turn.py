"""Loops that take networks and optimizers in turn: `for net, opt in zip(nets, opts)`, a part of a step on one batch."""

from __future__ import annotations

import ast

from .nodes import FUNCTIONS, LOOPS, Nodes, walk

OF_NETWORKS = {"parameters", "state_dict", "train", "eval", "forward"}
OF_OPTIMIZERS = {"step", "zero_grad"}


def takes_in_turn(nodes: Nodes, loop: ast.AST) -> bool:
    """Whether a loop inside of another goes through what is called or asked for its step, and no batches."""
    if not isinstance(loop, ast.For) or not _stands_in_another(nodes, loop):
        return False
    names = {n.id for n in walk(loop.target, ast.Name)}
    return any(_is_used(n, names) for s in loop.body for n in walk(s, ast.Call))


def _is_used(call: ast.Call, names: set[str]) -> bool:
    method = call.func if isinstance(call.func, ast.Attribute) else None
    of = method.value if method is not None else call.func
    known = method is None or method.attr in OF_NETWORKS | OF_OPTIMIZERS
    return known and isinstance(of, ast.Name) and of.id in names


def _stands_in_another(nodes: Nodes, loop: ast.For) -> bool:
    for up in nodes.ancestors(loop):
        if isinstance(up, FUNCTIONS):
            return False
        if isinstance(up, LOOPS):
            return True
    return False

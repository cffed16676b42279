"""Conditions that let something run only now and then: `step % n == 0`, the first step, the last one."""

from __future__ import annotations

import ast
import re
from functools import cached_property

from .nodes import Nodes, walk

_SELDOM_NAME = re.compile(r"^(should|do|is)_(log|print|report|eval|save)|^last_|_last$")


class Guards:
    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._known: dict[ast.expr, bool] = {}

    def is_modulo(self, test: ast.expr) -> bool:
        """`step % n == 0` and its like, also as part of a condition, also under a name."""
        if test not in self._known:
            self._known[test] = any(self._is_seldom(node) for node in walk(test))
        return self._known[test]

    def _is_seldom(self, node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.Mod)
        if isinstance(node, ast.Name):
            return node.id in self._modulo_names or _SELDOM_NAME.search(node.id) is not None
        if isinstance(node, ast.Compare):
            return len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq) and (_is_end(node) or _is_first(node))
        return False

    @cached_property
    def _modulo_names(self) -> set[str]:
        return {
            a.targets[0].id
            for a in self.nodes.of(ast.Assign)
            if len(a.targets) == 1
            and isinstance(a.targets[0], ast.Name)
            and isinstance(a.value, (ast.Compare, ast.BoolOp))
            and any(isinstance(n.op, ast.Mod) for n in walk(a.value, ast.BinOp))
        }


_COUNTER = re.compile(r"^(i|j|it|idx|n_iter|batch|step|iteration|global_step|batch_(i|id|idx|index|num))$")


def _is_first(compare: ast.Compare) -> bool:
    """`i == 0`: one step of an epoch."""
    side, number = compare.left, compare.comparators[0]
    return isinstance(number, ast.Constant) and isinstance(side, ast.Name) and bool(_COUNTER.match(side.id))


def _is_end(compare: ast.Compare) -> bool:
    """`i == len(loader) - 1`: the last step, once an epoch."""
    return any(
        isinstance(n, ast.BinOp)
        and isinstance(n.op, ast.Sub)
        and isinstance(n.right, ast.Constant)
        and n.right.value == 1
        for n in (compare.left, *compare.comparators)
    )

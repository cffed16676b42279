"""What a helper of several steps does only where it trains: under `if stage == "train":` or `if self.training:`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from .nodes import walk

SYNC_DIST_AT = {"log": 8, "log_dict": 7}  # its place among what is given by position


def only_in_training(node: ast.AST, ancestors: Iterable[ast.AST]) -> bool:
    child = node
    for up in ancestors:
        if isinstance(up, ast.If) and child in up.body and _asks_for_training(up.test):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        child = up
    return False


def _asks_for_training(test: ast.expr) -> bool:
    """`stage == "train"`, `self.training`"""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Eq, ast.In)):
        return any(isinstance(n, ast.Constant) and str(n.value).startswith(("train", "fit")) for n in walk(test))
    last = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return last in ("training", "is_training", "train")

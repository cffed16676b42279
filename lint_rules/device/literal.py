"""Device names as they are written, and the conditions that choose among them."""

from __future__ import annotations

import ast
import re

from ptmigrate.migrate.facts.nodes import walk

from ..file import File

ACCELERATOR = re.compile(r"(cuda|mps|xpu|hpu|npu)(:\d+)?\Z")
NUMBERED = re.compile(r"(cuda|mps|xpu|hpu|npu):\d+\Z")


def text_of(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def under_choice(node: ast.AST, file: File) -> bool:
    """Whether `if torch.cuda.is_available():`, a flag or its like decides about the node."""
    child = node
    for up in file.nodes.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test and not _is_main_guard(up.test):
            return True
        if isinstance(up, ast.BoolOp) or _left_before(up, child):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        child = up
    return False


def in_decorator(node: ast.AST, file: File) -> bool:
    """In the cases of a parametrized test, which say themselves when they are skipped."""
    child = node
    for up in file.nodes.ancestors(node):
        if child in getattr(up, "decorator_list", ()):
            return True
        if isinstance(up, ast.stmt):
            return False
        child = up
    return False


def _left_before(block: ast.AST, child: ast.AST) -> bool:
    """Whether `if not torch.cuda.is_available(): return ...` stands before the statement in its block."""
    body = getattr(block, "body", None)
    if not isinstance(body, list) or child not in body or not isinstance(child, (ast.Return, ast.Assign)):
        return False
    return any(
        isinstance(s, ast.If) and isinstance(s.body[-1], (ast.Return, ast.Raise)) and _asks_for_device(s.test)
        for s in body[: body.index(child)]
    )


def _asks_for_device(test: ast.expr) -> bool:
    names = [n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in walk(test)]
    return any(re.search(r"cuda|gpu|cpu|device|is_available|mps|xpu", name, re.IGNORECASE) for name in names)


def _is_main_guard(test: ast.expr) -> bool:
    return any(n.id == "__name__" for n in walk(test, ast.Name))

"""Device names as they are written, and the conditions that choose among them."""

from __future__ import annotations

import ast
import re

from ..file import File

ACCELERATOR = re.compile(r"(cuda|mps|xpu|hpu|npu)(:\d+)?\Z")
NUMBERED = re.compile(r"(cuda|mps|xpu|hpu|npu):\d+\Z")


def text_of(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def under_choice(node: ast.AST, file: File) -> bool:
    """Whether `if torch.cuda.is_available():`, a flag or its like decides about the node."""
    child = node
    for up in file.nodes.ancestors(node):
        if isinstance(up, ast.If | ast.IfExp) and child is not up.test and not _is_main_guard(up.test):
            return True
        if isinstance(up, ast.BoolOp):
            return True
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return False
        child = up
    return False


def _is_main_guard(test: ast.expr) -> bool:
    return any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(test))

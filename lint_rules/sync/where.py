"""What the rules about waiting share: at every step, or now and then; on the device, or on the host already."""

from __future__ import annotations

import ast

from ptmigrate.migrate.facts import own_methods as own
from ptmigrate.migrate.facts.loops import EVALUATES, Hot
from ptmigrate.migrate.facts.nodes import FUNCTIONS, LOOPS

from ..file import File, root

HOST_LIBRARIES = ("numpy", "math", "scipy", "sklearn", "random", "cv2", "pandas")


def every_step(node: ast.AST, file: File) -> Hot | None:
    """The hot loop whose every step runs the node; None under `if step % n == 0`, and where the loop ends after it."""
    hot = file.hot(node)
    return hot if hot is not None and not hot.guarded and not leaves_the_loop(node, file) else None


def where(hot: Hot) -> str:
    """`the training loop on line 12`."""
    kind = "evaluation" if hot.kind == EVALUATES else "training"
    if isinstance(hot.loop, FUNCTIONS):
        return f"{hot.loop.name} (line {hot.line})"
    return f"the {kind} loop on line {hot.line}"


def leaves_the_loop(node: ast.AST, file: File) -> bool:
    """Whether the branch of the node ends the loop or the program: such a line runs once."""
    child = node
    for up in file.nodes.ancestors(node):
        if isinstance(up, (ast.ExceptHandler, ast.Raise)) or (isinstance(up, ast.Assert) and child is up.msg):
            return True
        if isinstance(up, ast.If) and child is not up.test and _ends(up.body if child in up.body else up.orelse):
            return True
        if isinstance(up, (*LOOPS, ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        child = up
    return False


def _ends(block: list[ast.stmt]) -> bool:
    last = block[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        func = last.value.func
        return (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) in ("exit", "_exit", "quit")
    return isinstance(last, (ast.Break, ast.Raise))


def copies_nothing(func: ast.Attribute, file: File) -> bool:
    """Whether a method such as `item()` is one of a class of the file, in which nothing is copied."""
    return func.attr in file.own_methods and own.copies_nothing(file.facts, func)


def is_host_value(node: ast.expr, file: File) -> bool:
    """Whether a value is on the host already: of NumPy, or what the loader gave before anything moved it."""
    start = root(node)
    if not isinstance(start, ast.Name):
        return False
    full = file.resolve(start) or ""
    return full.startswith(HOST_LIBRARIES) or file.tensors.comes_from_loader(start)

"""Scripts that start processes of their own cannot be started several times: each would start all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

STARTS = {"spawn": "torch.multiprocessing", "init_rpc": "torch.distributed.rpc"}


def starts_processes(script: str) -> str | None:
    """`mp.spawn on line 12`, where a script does so by itself; None where it does not, or cannot be read."""
    try:
        raw = Path(script).read_bytes()
        if not any(word.encode() in raw for word in ("multiprocessing", "rpc")):
            return None
        tree = ast.parse(raw)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    imported = set(_imported(tree))
    for call, optional in _calls(tree, False):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if STARTS.get(name) in imported and not (optional and name == "spawn"):
            return f"{ast.unparse(call.func)} on line {call.lineno}"
    return None


def _calls(node: ast.AST, optional: bool) -> Iterator[tuple[ast.Call, bool]]:
    """Every call, and whether it stands under a condition other than the main guard."""
    if isinstance(node, ast.Call):
        yield node, optional
    names = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)} if isinstance(node, ast.If) else {"__name__"}
    inside = "__name__" not in names
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, optional or inside)


def _imported(tree: ast.Module) -> list[str]:
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
    return names

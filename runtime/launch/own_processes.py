"""Scripts that start processes of their own cannot be started several times: each would start all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

STARTS = {"spawn": "torch.multiprocessing", "init_rpc": "torch.distributed.rpc"}
# what a process of the script's own may do beside a rank: read, write, draw; not train, nor meet others
PROCESS, TRAINS = "Process", {"init_process_group", "init_rpc", "backward"}


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
        name = _last(call.func)
        starts = STARTS.get(name) in imported and not (optional and name == "spawn")
        if starts or (name == PROCESS and not optional and _multiprocessing(imported) and _trains(tree, call)):
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


def _multiprocessing(imported: set[str]) -> bool:
    return any("multiprocessing" in name.split(".")[:2] for name in imported)


def _trains(tree: ast.Module, process: ast.Call) -> bool:
    """Whether what a process runs, or is given, comes to a function of the file that trains, or meets others."""
    functions = {f.name: f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)}
    parts: list[ast.AST] = [*process.args, *process.keywords]
    seen: set[str] = set()
    while parts:
        for n in ast.walk(parts.pop()):
            if isinstance(n, ast.Call) and _last(n.func) in TRAINS:
                return True
            name = _last(n)
            if name in functions and name not in seen:
                seen.add(name)
                parts.append(functions[name])
    return False


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _imported(tree: ast.Module) -> list[str]:
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
    return names

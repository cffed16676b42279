"""Which files a migration covers: a script and the local modules that it imports, or every file of a folder."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

SKIPPED = {
    ".git",
    ".hg",
    ".svn",
    ".venv",
    "venv",
    "__pycache__",
    "node_modules",
    ".tox",
    ".nox",
    ".eggs",
    "site-packages",
}


def python_files(folder: Path) -> Iterator[Path]:
    """The files that a tree imports from beside the script, from packages below it, or relatively."""
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(d for d in folders if d not in SKIPPED and not d.startswith("."))
        for name in sorted(files):
            if name.endswith(".py"):
                yield Path(root, name)


def local_modules(script: Path, tree: ast.Module) -> list[Path]:
    """The files that a tree imports from beside the script, from packages below it, or relatively."""
    found: dict[Path, None] = {}
    roots = [script.parent, *_added_paths(script, tree)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                _find(roots, a.name.split("."), found)
        elif isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".") if node.module else []
            base = roots if not node.level else [script.parent.joinpath(*[".."] * (node.level - 1))]
            _find(base, parts, found)
            for a in node.names:
                _find(base, [*parts, a.name], found)
    found.pop(script, None)
    return list(found)


def _find(roots: list[Path], parts: list[str], found: dict[Path, None]) -> None:
    if not parts:
        return
    for root in roots:
        stem = root.joinpath(*parts)
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                for i in range(1, len(parts)):
                    package = root.joinpath(*parts[:i], "__init__.py")
                    if package.is_file():
                        found[Path(os.path.normpath(package))] = None
                found[Path(os.path.normpath(path))] = None
                return


def _added_paths(script: Path, tree: ast.Module) -> list[Path]:
    """Literal folders of `sys.path.append("../")` and its like."""
    added = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "insert")
            and ast.unparse(node.func.value) == "sys.path"
            and node.args
            and isinstance(node.args[-1], ast.Constant)
            and isinstance(node.args[-1].value, str)
        ):
            added.append(script.parent / node.args[-1].value)
    return added

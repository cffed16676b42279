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


def followed(script: Path) -> Iterator[Path]:
    """The local modules that a script imports, those that they import, and so on."""
    roots: dict[Path, None] = {script.parent: None}  # what stands on sys.path, as far as the files say
    seen, queue = {_key(script)}, [script]
    while queue:
        path = queue.pop(0)
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        roots.update(dict.fromkeys(added_paths(path, tree)))
        for module in local_modules(path, tree, list(roots)):
            if _key(module) not in seen:
                seen.add(_key(module))
                queue.append(module)
                yield module


def local_modules(path: Path, tree: ast.Module, roots: list[Path]) -> list[Path]:
    """The files that a tree imports: from the folders that stand on sys.path, relatively, and by name."""
    found: dict[Path, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                _find(roots, a.name.split("."), found)
        elif isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".") if node.module else []
            base = roots if not node.level else [path.parent.joinpath(*[".."] * (node.level - 1))]
            _find(base, parts, found)
            for a in node.names:
                _find(base, [*parts, a.name], found)
        elif isinstance(node, ast.Call) and node.args and _imports_by_name(node):
            _find_named(roots, node.args[0], found)
    found.pop(path, None)
    return list(found)


def _key(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _imports_by_name(call: ast.Call) -> bool:
    return ast.unparse(call.func) in ("importlib.import_module", "import_module", "__import__")


def _find_named(roots: list[Path], name: ast.expr, found: dict[Path, None]) -> None:
    """`import_module("models.unet")`, and every module of `models` for `import_module(f"models.{args.model}")`."""
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        _find(roots, name.value.split("."), found)
        return
    start: ast.expr | None = None
    if isinstance(name, ast.JoinedStr) and name.values:
        start = name.values[0]
    elif isinstance(name, ast.BinOp):
        start = name.left
    elif isinstance(name, ast.Call) and isinstance(name.func, ast.Attribute) and name.func.attr == "format":
        start = name.func.value
    if not (isinstance(start, ast.Constant) and isinstance(start.value, str)):
        return
    package, dot, _ = start.value.partition("{")[0].rpartition(".")
    if dot:
        _find(roots, package.split("."), found)
        for root in roots:
            for file in sorted(root.joinpath(*package.split(".")).glob("*.py")):
                found[Path(os.path.normpath(file))] = None


def _find(roots: list[Path], parts: list[str], found: dict[Path, None]) -> None:
    if not parts:
        return
    for root in roots:
        stem = root.joinpath(*parts)
        for path in (stem / "__init__.py", stem.with_suffix(".py")):
            if path.is_file():
                for i in range(1, len(parts)):
                    package = root.joinpath(*parts[:i], "__init__.py")
                    if package.is_file():
                        found[Path(os.path.normpath(package))] = None
                found[Path(os.path.normpath(path))] = None
                return


def added_paths(path: Path, tree: ast.Module) -> list[Path]:
    """The folders of `sys.path.append(...)` and its like, where the file itself says which they are."""
    added = []
    known = _Folders(path, tree)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        on_path = ast.unparse(node.func) in ("sys.path.append", "sys.path.insert", "site.addsitedir", "path.append")
        folder = known.value(node.args[-1]) if on_path else None
        if folder is not None:
            added.append(Path(os.path.normpath(path.parent / folder)))
    return added


class _Folders:
    """Folders that are written in terms of `__file__`, of the working folder, and of names given such values."""

    def __init__(self, path: Path, tree: ast.Module) -> None:
        self.path = path
        self.names = {
            s.targets[0].id: s.value
            for s in ast.walk(tree)
            if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)
        }

    def value(self, e: ast.expr, depth: int = 0) -> str | None:
        """A path, absolute or from the file's folder; None where it is not known. (The script is run in its folder.)"""
        if depth > 12:
            return None
        if isinstance(e, ast.Constant):
            return e.value if isinstance(e.value, str) else None
        if isinstance(e, ast.Name):
            if e.id == "__file__":
                return os.path.abspath(self.path)
            return self.value(self.names[e.id], depth + 1) if e.id in self.names else None
        if isinstance(e, ast.BinOp) and isinstance(e.op, ast.Add | ast.Div):
            a, b = self.value(e.left, depth + 1), self.value(e.right, depth + 1)
            return None if a is None or b is None else a + b if isinstance(e.op, ast.Add) else os.path.join(a, b)
        if isinstance(e, ast.Subscript):  # Path(__file__).parents[1]
            return self._parents(e, depth)
        if isinstance(e, ast.Attribute):
            return self._attribute(e, depth)
        return self._call(e, depth) if isinstance(e, ast.Call) else None

    def _attribute(self, e: ast.Attribute, depth: int) -> str | None:
        if ast.unparse(e) in ("os.pardir", "os.curdir"):
            return os.pardir if e.attr == "pardir" else os.curdir
        inner = self.value(e.value, depth + 1) if e.attr == "parent" else None
        return os.path.dirname(inner) if inner is not None else None

    def _parents(self, e: ast.Subscript, depth: int) -> str | None:
        of, index = e.value, e.slice
        if not (isinstance(of, ast.Attribute) and of.attr == "parents" and isinstance(index, ast.Constant)):
            return None
        inner = self.value(of.value, depth + 1)
        above = Path(inner).parents if inner is not None else ()
        return str(above[index.value]) if isinstance(index.value, int) and 0 <= index.value < len(above) else None

    def _call(self, e: ast.Call, depth: int) -> str | None:
        name = ast.unparse(e.func).rsplit(".", 1)[-1]
        if name in ("getcwd", "cwd") and not e.args:
            return os.path.abspath(self.path.parent)
        if name in ("resolve", "absolute", "as_posix") and isinstance(e.func, ast.Attribute):
            return self.value(e.func.value, depth + 1)
        parts = [self.value(a, depth + 1) for a in e.args]
        known = [p for p in parts if p is not None]
        if not parts or len(known) < len(parts):
            return None
        if name in ("join", "joinpath"):
            first = self.value(e.func.value, depth + 1) if name == "joinpath" else None  # type: ignore[attr-defined]
            return os.path.join(*([first] if first is not None else []), *known)
        if name in ("abspath", "realpath", "normpath", "str", "Path", "PurePath", "expanduser", "fspath"):
            return os.path.join(*known)
        return os.path.dirname(known[0]) if name == "dirname" else None

"""Which files a migration covers: a script and the local modules that it imports, or every file of a folder."""

from __future__ import annotations

import ast
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from .codemods.mend_async import mend
from .facts.annotated import as_assignments
from .facts.nodes import walk
from .facts.source import SourceError, decode, read_bytes
from .import_folders import Folders
from .reachable import reachable

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
# what lies in the folder that a project is installed from, or that its scripts are run in
MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")


def python_files(folder: Path) -> Iterator[Path]:
    """The files that a tree imports from beside the script, from packages below it, or relatively."""
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(d for d in folders if d not in SKIPPED and not d.startswith("."))
        for name in sorted(files):
            if name.endswith(".py"):
                yield Path(root, name)


def followed(script: Path) -> list[Path]:
    """The local modules that a script imports, those that they import, and so on."""
    return Imports().followed(script)


@dataclass
class _Asks:
    """What a file imports: (folder, parts of a name) where the folder is known, and for what stands on sys.path."""

    names: list[tuple[Path | None, tuple[str, ...]]] = field(default_factory=list)
    packages: list[tuple[str, ...]] = field(default_factory=list)  # of which every module may be imported
    added: list[Path] = field(default_factory=list)  # folders that it puts on sys.path
    runs: bool = False  # does more than define: it is a script


class Imports:
    """Which local modules files import; each file is read once, however many scripts reach it."""

    def __init__(self) -> None:
        self._asks: dict[Path, _Asks] = {}
        self._modules: dict[tuple[Path, tuple[Path, ...]], list[Path]] = {}
        self._given: dict[tuple[Path, Path], dict[int, tuple[Path, ...]]] = {}
        self._stands: dict[Path, tuple[Path, ...]] = {}
        self._folders = Folders()
        self._real: dict[Path, Path] = {}
        self._followed: dict[Path, list[Path]] = {}
        self._projects: dict[Path, frozenset[Path]] = {}

    def real(self, path: Path) -> Path:
        """The file that a path leads to, links followed."""
        if path not in self._real:
            self._real[path] = Path(os.path.realpath(path))
        return self._real[path]

    def project(self, script: Path) -> frozenset[Path]:
        """The files that a script leads to, itself among them, links followed."""
        if script not in self._projects:
            self._projects[script] = frozenset(self.real(p) for p in (script, *self.followed(script)))
        return self._projects[script]

    def module(self, script: Path, parts: tuple[str, ...]) -> Path | None:
        """The file of a module that a script imports by name; None where it is no local one."""
        found = (self._folders.find(root, parts) for root in self._roots(script))
        return next((files[-1] for files in found if files), None)

    def direct(self, path: Path, script: Path) -> set[Path]:
        """The files that a file itself imports, links followed, beside `script` or run by itself."""
        roots = dict.fromkeys((*self._roots(script), *self._roots(path)))
        return {self.real(p) for p in self._local(path, tuple(roots))}

    def around(self, path: Path) -> set[Path]:
        """The files of the packages that a file asks by dots alone, links followed: `from . import train`."""
        folders = [folder for folder, parts in self._of(path).names if folder is not None and not parts]
        return {self.real(folder / "__init__.py") for folder in folders}

    def runs(self, path: Path) -> bool:
        """Whether a file does more than define: it is a script."""
        return self._of(path).runs

    def led_to(self, script: Path) -> dict[Path, frozenset[Path]]:
        """What each file of a script's project leads to where that script runs, links followed; none for a module.

        A module's own imports start at the script's folder, which the module by itself does not show.
        """
        if not self.runs(script):
            return {}
        return reachable({self.real(p): self.direct(p, script) for p in (script, *self.followed(script))})

    def _roots(self, script: Path) -> tuple[Path, ...]:
        """The folders that a script finds modules in, as far as it says so itself."""
        if script not in self._stands:
            self._stands[script] = (script.parent, *self._of(script).added, *self._installed(script))
        return self._stands[script]

    def _installed(self, script: Path) -> list[Path]:
        return project_folders(script) if self._of(script).runs else []

    def followed(self, script: Path) -> list[Path]:
        """The local modules that a script imports, those that they import, and so on."""
        if script not in self._followed:
            self._followed[script] = self._follow(script)
        return self._followed[script]

    def _follow(self, script: Path) -> list[Path]:
        roots: dict[Path, None] = {script.parent: None}  # what stands on sys.path, as far as the files say
        project = self._installed(script)
        found: list[Path] = []
        seen, queue = {self.real(script)}, deque([script])
        while queue:
            path = queue.popleft()
            roots.update(dict.fromkeys(self._of(path).added))
            for module in self._local(path, (*roots, *project)):
                if self.real(module) not in seen:
                    seen.add(self.real(module))
                    queue.append(module)
                    found.append(module)
        return found

    def _of(self, path: Path) -> _Asks:
        if path not in self._asks:
            self._asks[path] = _asks(path)
        return self._asks[path]

    def _local(self, path: Path, roots: tuple[Path, ...]) -> list[Path]:
        """The files that a file imports: from the folders that stand on sys.path, relatively, and by name."""
        if (path, roots) not in self._modules:
            named: dict[int, tuple[Path, ...]] = {}  # the first folder that has a name gives it
            for root in reversed(roots):
                named |= self._from(path, root)
            found = dict.fromkeys(file for i in sorted(named) for file in named[i])
            for package in self._of(path).packages:
                found |= dict.fromkeys(next(filter(None, (self._folders.find(r, package) for r in roots)), ()))
                for root in roots:
                    modules = sorted(root.joinpath(*package).glob("*.py"))
                    found |= dict.fromkeys(Path(os.path.normpath(m)) for m in modules)
            found.pop(path, None)
            self._modules[path, roots] = list(found)
        return self._modules[path, roots]

    def _from(self, path: Path, root: Path) -> dict[int, tuple[Path, ...]]:
        """What a file imports from one folder, and relatively, each by the place of its name."""
        if (path, root) not in self._given:
            names = enumerate(self._of(path).names)
            found = ((i, self._folders.find(root if folder is None else folder, parts)) for i, (folder, parts) in names)
            self._given[path, root] = {i: files for i, files in found if files}
        return self._given[path, root]


def _parsed(raw: bytes) -> ast.Module:
    """The tree of a file, which `async=` keeps from being one until it is mended."""
    try:
        return as_assignments(ast.parse(raw))
    except SyntaxError:
        if b"async" not in raw:
            raise
        return as_assignments(ast.parse(mend(decode(raw).text)[0]))


def _asks(path: Path) -> _Asks:
    asks = _Asks()
    try:
        raw = read_bytes(path)
        tree = _parsed(raw) if b"import" in raw else ast.parse("")
    except (SourceError, SyntaxError, ValueError, RecursionError):
        return asks
    asks.added = added_paths(path, tree)
    asks.runs = any(_does_something(s) for s in tree.body)
    for node in walk(tree):
        if isinstance(node, ast.Import):
            asks.names += [(None, tuple(a.name.split("."))) for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = tuple(node.module.split(".")) if node.module else ()
            folder = path.parent.joinpath(*[".."] * (node.level - 1)) if node.level else None
            asks.names.append((folder, parts))
            asks.names += [(folder, (*parts, a.name)) for a in node.names]
        elif isinstance(node, ast.Call) and node.args and _imports_by_name(node):
            for name in _given_to(node.args[0], tree):
                _ask_by_name(name, asks)
    return asks


def _given_to(name: ast.expr, tree: ast.Module) -> list[ast.expr]:
    """What a name that is imported by is given in the file: `name = "models." + kind`, `import_module(name)`."""
    if not isinstance(name, ast.Name):
        return [name]
    given = (s for s in walk(tree, ast.Assign) if any(isinstance(t, ast.Name) and t.id == name.id for t in s.targets))
    return [s.value for s in given]


def _does_something(s: ast.stmt) -> bool:
    if isinstance(s, ast.If):
        return any(n.id == "__name__" for n in walk(s.test, ast.Name))
    return isinstance(s, (ast.For, ast.While, ast.With)) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Call))


def project_folders(script: Path) -> list[Path]:
    """Where a script below its project finds the project's packages: they are installed, or it is run from there.

    The folder above the packages that it stands in, and the next one that a project is made of, with its `src`.
    """
    above = [script.parent, *(Path(os.path.normpath(script.parent / os.sep.join([".."] * n))) for n in range(1, 6))]
    found = [f for inner, f in pairwise(above) if (inner / "__init__.py").is_file()]
    found = [f for f in found if not (f / "__init__.py").is_file()][:1]
    root = next((f for f in above if any((f / mark).exists() for mark in MARKS)), None)
    found += [root, root / "src"] if root is not None else []
    return [f for f in dict.fromkeys(found) if f != script.parent and f.name not in SKIPPED]


def _imports_by_name(call: ast.Call) -> bool:
    f = call.func
    if isinstance(f, ast.Attribute):
        return f.attr == "import_module" and isinstance(f.value, ast.Name) and f.value.id == "importlib"
    return isinstance(f, ast.Name) and f.id in ("import_module", "__import__")


def unfollowed(call: ast.Call, tree: ast.Module) -> bool:
    """`import_module(args.trainer)`: an import by a name that only a run of the script tells."""
    if not _imports_by_name(call) or not call.args:
        return False
    asks = _Asks()
    for name in _given_to(call.args[0], tree):
        _ask_by_name(name, asks)
    return not (asks.names or asks.packages)


def _ask_by_name(name: ast.expr, asks: _Asks) -> None:
    """`import_module("models.unet")`, and every module of `models` for `import_module(f"models.{args.model}")`."""
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        asks.names.append((None, tuple(name.value.split("."))))
        return
    start: ast.expr | None = None
    if isinstance(name, ast.JoinedStr) and name.values:
        start = name.values[0]
    elif isinstance(name, ast.BinOp):
        start = name.left
        while isinstance(start, ast.BinOp):  # "models." + kind + "_model"
            start = start.left
    elif isinstance(name, ast.Call) and isinstance(name.func, ast.Attribute) and name.func.attr == "format":
        start = name.func.value
    if not (isinstance(start, ast.Constant) and isinstance(start.value, str)):
        return
    package, dot, _ = start.value.partition("{")[0].partition("%")[0].rpartition(".")
    if dot:
        asks.packages.append(tuple(package.split(".")))


def added_paths(path: Path, tree: ast.Module) -> list[Path]:
    """The folders of `sys.path.append(...)` and its like, where the file itself says which they are."""
    known = _Folders(path, tree)
    added = [known.value(e) for e in _put_on_path(tree, known)]
    for loop in walk(tree, ast.For):  # for folder in [HERE, ROOT]: sys.path.append(folder)
        if isinstance(loop.target, ast.Name):
            for e in known.elements(loop.iter):
                each = known.where(loop.target.id, e)
                added += [each.value(put) for s in loop.body for put in _put_on_path(s, each)]
    return [Path(os.path.normpath(path.parent / folder)) for folder in dict.fromkeys(added) if folder is not None]


def _put_on_path(tree: ast.AST, known: _Folders) -> Iterator[ast.expr]:
    """What is put on the path: by `append(a)`, `insert(0, a)`, `extend([a, b])`, `+= [a]`, `sys.path = [a] + ...`."""
    for node in walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            called = ast.unparse(node.func)
            if called in ("sys.path.append", "sys.path.insert", "site.addsitedir", "path.append"):
                yield node.args[-1]
            elif called == "sys.path.extend":
                yield from known.elements(node.args[0])
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            of = target.value if isinstance(target, ast.Subscript) else target  # sys.path[:0] = [a]
            if isinstance(of, ast.Attribute) and ast.unparse(of) == "sys.path":
                yield from known.elements(node.value)


class _Folders:
    """Folders that are written in terms of `__file__`, of the working folder, and of names given such values."""

    def __init__(self, path: Path, tree: ast.Module) -> None:
        self.path = path
        self.names: dict[str, ast.expr] = {
            s.targets[0].id: s.value
            for s in walk(tree, ast.Assign)
            if len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)
        }

    def where(self, name: str, value: ast.expr) -> _Folders:
        """The same where a name has this value."""
        other = _Folders.__new__(_Folders)
        other.path, other.names = self.path, {**self.names, name: value}
        return other

    def elements(self, e: ast.expr, depth: int = 0) -> list[ast.expr]:
        """Those of a list that is written here, or by its name."""
        if depth > 12:
            return []
        if isinstance(e, (ast.List, ast.Tuple, ast.Set)):
            return [x for x in e.elts if not isinstance(x, ast.Starred)]
        if isinstance(e, ast.BinOp) and isinstance(e.op, ast.Add):
            return [*self.elements(e.left, depth + 1), *self.elements(e.right, depth + 1)]
        return self.elements(self.names[e.id], depth + 1) if isinstance(e, ast.Name) and e.id in self.names else []

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
        if isinstance(e, ast.BinOp) and isinstance(e.op, (ast.Add, ast.Div)):
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

"""The files below the paths that were given, without the folders that hold other people's or built code."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from ptmigrate.migrate.facts.source import SourceError

SKIPPED = {
    ".git", ".hg", ".svn", ".venv", "venv", ".env", "node_modules", "__pycache__", "build", "dist", ".tox", ".nox",
    ".mypy_cache", ".ruff_cache", ".pytest_cache", ".eggs", ".ipynb_checkpoints", "site-packages", ".ptlint_cache",
    "_build", "buck-out", ".direnv", "__pypackages__", ".pants.d",
}  # fmt: skip


def python_files(paths: Iterable[str], exclude: Iterable[str] = ()) -> Iterator[str | SourceError]:
    """Each file once, in order; a SourceError for a path that is not there or a folder that cannot be read.

    A file that is named is always taken, whatever its ending.
    """
    seen: set[str] = set()
    patterns = list(exclude)
    for path in paths:
        try:
            is_folder = stat.S_ISDIR(os.stat(path).st_mode)
        except OSError as error:
            yield SourceError(path, 1, 1, (error.strerror or str(error)).lower())
            continue
        for found in _below(path, patterns) if is_folder else [path]:
            key = found.path if isinstance(found, SourceError) else found
            if key not in seen:
                seen.add(key)
                yield found


def _below(folder: str, exclude: list[str]) -> Iterator[str | SourceError]:
    stack = [folder]
    while stack:
        here = stack.pop()
        try:
            with os.scandir(here) as entries:
                listed = sorted(entries, key=lambda e: e.name)
        except OSError as error:
            yield SourceError(here, 1, 1, f"cannot list the folder: {(error.strerror or str(error)).lower()}")
            continue
        folders = []
        for entry in listed:
            path = entry.path[2:] if entry.path.startswith("./") else entry.path
            if exclude and _excluded(path, entry.name, exclude):
                continue
            if entry.is_symlink():
                loop = _leads_back(entry, here)
                if loop:
                    yield SourceError(path, 1, 1, loop)
                elif entry.name.endswith(".py") and not entry.is_dir():
                    yield path
            elif entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED and not _is_environment(entry.path):
                    folders.append(path)
            elif entry.name.endswith(".py"):
                yield path
        stack.extend(reversed(folders))


def _leads_back(entry: os.DirEntry[str], here: str) -> str | None:
    """Why a link cannot be followed to an end; links to folders elsewhere are left alone without a word."""
    try:
        if not entry.is_dir():
            os.stat(entry.path)
            return None
    except OSError as error:
        import errno

        return "a symbolic link that leads back to itself" if error.errno == errno.ELOOP else None
    target = os.path.realpath(entry.path)
    above = os.path.realpath(here)
    is_above = above == target or above.startswith(target.rstrip(os.sep) + os.sep)
    return f"a symbolic link back to {target}: not followed" if is_above else None


def _is_environment(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "pyvenv.cfg"))


def _excluded(path: str, name: str, patterns: list[str]) -> bool:
    from fnmatch import fnmatch

    return any(fnmatch(name, p) or fnmatch(path, p) or path.startswith(p.rstrip("/") + "/") for p in patterns)

"""Which files of a folder a dotted name imports; each folder is listed once: a project asks thousands of times."""

from __future__ import annotations

import os
from pathlib import Path


class Folders:
    """What lies in folders, as it was when each was first asked for."""

    def __init__(self) -> None:
        self._listed: dict[str, frozenset[str]] = {}
        self._found: dict[tuple[Path, tuple[str, ...]], tuple[Path, ...]] = {}

    def find(self, root: Path, parts: tuple[str, ...]) -> tuple[Path, ...]:
        """The file that a name leads to from a folder, after those of the packages around it; () for none."""
        if (root, parts) not in self._found:
            self._found[root, parts] = self._find(str(root), [p for p in parts if p])
        return self._found[root, parts]

    def _find(self, root: str, parts: list[str]) -> tuple[Path, ...]:
        if not parts:
            return ()
        folders = [os.path.join(root, *parts[:i]) for i in range(len(parts) + 1)]
        if parts[0] not in (names := self._names(root)) and f"{parts[0]}.py" not in names:
            return ()
        if "__init__.py" in self._names(folders[-1]):
            file = os.path.join(folders[-1], "__init__.py")
        elif f"{parts[-1]}.py" in self._names(folders[-2]):
            file = os.path.join(folders[-2], f"{parts[-1]}.py")
        else:
            return ()
        packages = [os.path.join(f, "__init__.py") for f in folders[1:-1] if "__init__.py" in self._names(f)]
        return tuple(Path(os.path.normpath(f)) for f in (*packages, file)) if os.path.isfile(file) else ()

    def _names(self, folder: str) -> frozenset[str]:
        if folder not in self._listed:
            try:
                self._listed[folder] = frozenset(os.listdir(folder))
            except OSError:
                self._listed[folder] = frozenset()
        return self._listed[folder]

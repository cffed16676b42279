"""The names that other files take from a module: `from model import Variable`, `model.Variable`, by a star."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

from .facts.nodes import walk
from .facts.source import SourceError, read_source
from .sources import Imports

# a module's names that are asked for by texts
BY_TEXT = re.compile(r"\b(?:getattr|vars|__dict__|import_module|__import__|eval|exec)\b")


class TakenNames:
    """Whether another file takes a name from this one; the files are read when that is first asked."""

    def __init__(self, path: Path, files: Callable[[], Iterable[Path]], imports: Imports) -> None:
        self.path, self.files, self.imports = path, files, imports
        self.stem = path.parent.name if path.stem == "__init__" else path.stem

    def __call__(self, name: str) -> bool:
        word = re.compile(rf"\b{name}\b")
        return any(word.search(text) and self._takes(text, tree, name) for text, tree in self._readers)

    @property
    def texts(self) -> Iterable[str]:
        """Of the files that may: those that name it."""
        return (text for text, _ in self._readers)

    @cached_property
    def _readers(self) -> list[tuple[str, ast.Module]]:
        own, found = self.imports.real(self.path), []
        of_module = re.compile(rf"\b{re.escape(self.stem)}\b|\bfrom \.+ import\b|\bimport_module\b|\b__import__\b")
        for path in dict.fromkeys(self.imports.real(p) for p in self.files()):
            try:
                text = read_source(path).text if path != own else ""
                if of_module.search(text):
                    found.append((text, ast.parse(text)))
            except (SourceError, SyntaxError, RecursionError, ValueError):
                continue
        return found

    def _takes(self, text: str, tree: ast.Module, name: str) -> bool:
        whole = False  # whether the module itself has a name there
        for s in walk(tree):
            if isinstance(s, ast.ImportFrom):
                names = {a.name for a in s.names}
                of_it = (s.module or "").rpartition(".")[2] == self.stem or (s.module is None and s.level > 0)
                if of_it and names & {name, "*"}:
                    return True
                whole = whole or self.stem in names or (of_it and self.path.stem == "__init__")
            elif isinstance(s, ast.Import):
                whole = whole or any(self.stem in a.name.split(".") for a in s.names)
        if BY_TEXT.search(text):
            return True
        return whole and any(n.attr == name for n in walk(tree, ast.Attribute))

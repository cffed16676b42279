"""The rules as a plugin of flake8, which finds it by its entry point: `flake8 --select PTM`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.source import Source, SourceError

from .engine import Linter
from .registry import choose


class Plugin:
    """flake8 gives the lines of a file and takes (line, column, text, type); it applies `# noqa` itself."""

    name = "ptlint"

    _linter: Linter | None = None

    def __init__(self, tree: ast.AST, lines: list[str], filename: str = "<stdin>") -> None:
        self.text = "".join(lines)
        self.filename = filename

    def run(self) -> Iterator[tuple[int, int, str, type]]:
        if "torch" not in self.text:
            return
        if Plugin._linter is None:
            Plugin._linter = Linter(choose(), report_unused=False)
        try:
            findings = Plugin._linter.lint_source(Source(self.filename, b"", self.text, "utf-8", b""))
        except SourceError:
            return  # flake8 says so itself
        for f in findings:
            yield f.line, f.column - 1, f"{f.code} {f.message}", type(self)

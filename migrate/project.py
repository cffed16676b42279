"""A migration of one script with its local modules, or of a folder: what is read and what it becomes."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .codemods.mend_async import mend
from .facts.source import Source, SourceError, mentions_torch, parse, read_source
from .migrate import Options, Result, migrate_text
from .report import FileReport, Note
from .sources import local_modules, python_files


@dataclass
class Migrated:
    """One file: what was read, what it became, and its report. `source` is None when it could not be read."""

    path: Path
    root: Path  # the folder that its place in the output is relative to
    source: Source | None
    result: Result | None
    report: FileReport

    @property
    def data(self) -> bytes:
        assert self.source is not None and self.result is not None
        return self.source.raw if not self.report.changed else self.source.encode(self.result.text)


def collect(paths: Iterable[Path]) -> list[tuple[Path, Path, bool]]:
    """(file, root, whether it is a script) for scripts with the modules that they import, and for folders."""
    found: dict[Path, tuple[Path, Path, bool]] = {}
    for path in paths:
        if path.is_dir():
            for f in python_files(path):
                found.setdefault(_key(f), (f, path, True))
            continue
        found[_key(path)] = (path, path.parent, True)
        for module in _followed(path):
            root = Path(os.path.commonpath([_absolute(path.parent), _absolute(module.parent)]))
            found.setdefault(_key(module), (module, path.parent if root == _absolute(path.parent) else root, False))
    return list(found.values())


def _followed(script: Path) -> Iterator[Path]:
    """The local modules that a script imports, those that they import, and so on."""
    seen, queue = {_key(script)}, [script]
    while queue:
        path = queue.pop(0)
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        for module in (
            local_modules(script, tree) if path == script else [*local_modules(path, tree), *_from(script, tree)]
        ):
            if _key(module) not in seen:
                seen.add(_key(module))
                queue.append(module)
                yield module


def _from(script: Path, tree: ast.Module) -> list[Path]:
    """Modules found from the script's own folder, which is on sys.path whoever imports them."""
    return local_modules(script, tree)


def _key(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def migrate_file(path: Path, root: Path, is_script: bool, options: Options) -> Migrated:
    """Read, migrate and report one file; what goes wrong is in the report."""
    report = FileReport(str(path))
    try:
        source = read_source(path)
        if not mentions_torch(source.raw):
            return Migrated(path, root, source, Result(source.text, "none"), report)
        if mend(source.text)[0] == source.text:
            parse(source)  # raises with the place and the reason
        result = migrate_text(source.text, options, is_script)
        ast.parse(result.text)
    except RecursionError:
        report.error, report.plan = f"{path}:1:1: nested too deeply to be migrated", "refused"
        return Migrated(path, root, None, None, report)
    except SourceError as e:
        report.error, report.plan = str(e), "refused"
        return Migrated(path, root, None, None, report)
    report.plan, report.edits, report.attention = result.plan, result.edits, result.attention
    report.changed = result.text != source.text
    return Migrated(path, root, source, result, report)


def migrate_all(
    files: list[tuple[Path, Path, bool]], options: Options, tick: Callable[[Path], None] | None = None
) -> list[Migrated]:
    done = []
    for path, root, is_script in files:
        if tick is not None:
            tick(path)
        done.append(migrate_file(path, root, is_script, options))
    return done


def note_nothing(m: Migrated) -> str | None:
    """One line for a script that has nothing to migrate."""
    if m.source is not None and not mentions_torch(m.source.raw):
        return f"{m.path}: no torch in this file: nothing to do"
    return None


__all__ = ["Migrated", "Note", "collect", "migrate_all", "migrate_file", "note_nothing"]

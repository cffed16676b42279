"""A migration of one script with its local modules, or of a folder: what is read and what it becomes."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from .codemods.mend_async import mend, renamed
from .elsewhere import Elsewhere, of_projects
from .facts.source import Source, SourceError, mentions_torch, parse, read_source
from .migrate import Options, Result, migrate_text
from .report import FileReport, Note
from .sources import Imports, followed, python_files


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
    """(file, root, whether it is a script) for scripts with the modules that they import, and for folders.

    A script and its modules have one root, so that they lie to one another in the output as they do in the project.
    """
    found: dict[Path, tuple[Path, Path, bool]] = {}
    for path in paths:
        if path.is_dir():
            for f in python_files(path):
                found.setdefault(_key(f), (f, path, True))
            continue
        modules = list(followed(path))
        root = Path(os.path.commonpath([_absolute(f.parent) for f in (path, *modules)]))
        root = path.parent if root == _absolute(path.parent) else root
        found[_key(path)] = (path, root, True)
        for module in modules:
            found.setdefault(_key(module), (module, root, False))
    return list(found.values())


def _key(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def migrate_file(
    path: Path,
    root: Path,
    is_script: bool,
    options: Options,
    kept: bool = False,
    elsewhere: Elsewhere | None = None,
) -> Migrated:
    """Read, migrate and report one file; what goes wrong is in the report."""
    report = FileReport(str(path))
    try:
        source = read_source(path)
        if not mentions_torch(source.raw):
            return Migrated(path, root, source, Result(source.text, "none"), report)
        if mend(source.text)[0] == source.text:
            tried = renamed(source.text)[0]
            parse(Source(source.path, source.raw, tried, source.encoding, source.bom))  # raises with place and reason
        result = migrate_text(source.text, options, is_script, kept, elsewhere)
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
    done: list[Migrated] = []
    refused = loop = False  # the script whose modules these are
    imports = Imports()
    kept = _kept_projects(files, imports)
    elsewhere = of_projects([path for path, _, _ in files], imports)
    for path, root, is_script in files:
        if tick is not None:
            tick(path)
        if refused and not is_script:
            m = _as_it_is(path, root)
        else:
            keeps = path in kept or (loop and not is_script)
            m = migrate_file(path, root, is_script, options, keeps, elsewhere.get(path))
        if is_script:
            refused, loop = m.report.plan == "refused", m.report.plan == "loop"
        done.append(m)
    return done


def _kept_projects(files: list[tuple[Path, Path, bool]], imports: Imports) -> set[Path]:
    """Files that make what a loop in another file trains: that loop is kept, and so is what these files place.

    A file that says nothing of backward() imports, through others, one that does.
    """
    raw = {_key(path): _bytes(path) for path, _, _ in files}
    trains = {key for key, data in raw.items() if b".backward(" in data and mentions_torch(data)}
    kept: set[Path] = set()
    for path, _, is_script in files:
        data = raw[_key(path)]
        if not (is_script and trains and mentions_torch(data)) or _key(path) in trains:
            continue
        project = imports.project(path) - {_key(path)}
        if project & trains:
            kept.update(p for p, _, script in files if p == path or (_key(p) in project and not script))
    return kept


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _as_it_is(path: Path, root: Path) -> Migrated:
    """A module of a script that is refused: it keeps its bytes as well, or half of a program would be changed."""
    report = FileReport(str(path))
    try:
        source = read_source(path)
    except SourceError as e:
        report.error, report.plan = str(e), "refused"
        return Migrated(path, root, None, None, report)
    return Migrated(path, root, source, Result(source.text, "none"), report)


def note_nothing(m: Migrated) -> str | None:
    """One line for a script that has nothing to migrate."""
    if m.source is not None and not mentions_torch(m.source.raw):
        return f"{m.path}: no torch in this file: nothing to do"
    if m.result is not None and m.result.reason:
        return f"{m.path}: {m.result.reason}: nothing to do"
    return None


__all__ = ["Migrated", "Note", "collect", "migrate_all", "migrate_file", "note_nothing"]

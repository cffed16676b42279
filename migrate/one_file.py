"""One file of a migration: what is read, what it becomes, and its report."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass
from pathlib import Path

from .codemods.mend_async import mend, renamed
from .elsewhere import Elsewhere
from .facts.source import Source, SourceError, forget_parsed, mentions_torch, parse, read_bytes, read_source
from .lifted import FAULTS
from .migrate import has_work, migrate_text, what_is_there
from .report import FileReport, Note
from .result import Options, Result

File = tuple[Path, Path, bool]  # the file, the folder that its place in the output is relative to, whether a script


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


def real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def bytes_of(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except SourceError:
        return b""


def migrate_file(
    path: Path,
    root: Path,
    is_script: bool,
    options: Options,
    kept: bool = False,
    elsewhere: Elsewhere | None = None,
    joined: str | None = None,
) -> Migrated:
    """Read, migrate and report one file; what goes wrong is in the report. `joined`: its text with what came into it
    from other files, or without what went into another.
    """
    report = FileReport(str(path))
    try:
        source = read_source(path)
        if not (joined is not None or has_work(source.text, options, elsewhere)):
            return Migrated(path, root, source, Result(source.text, "none"), report)
        if mend(source.text)[0] == source.text:
            tried = renamed(source.text)[0]
            whole = Source(source.path, source.raw, tried, source.encoding, source.bom)
            parse(whole, keep=True)  # raises with place and reason
        result = migrate_text(source.text if joined is None else joined, options, is_script, kept, elsewhere)
        if result.text != source.text:
            ast.parse(result.text)
    except RecursionError:
        report.error, report.plan = f"{path}:1:1: nested too deeply to be migrated", "refused"
        return Migrated(path, root, None, None, report)
    except SourceError as e:
        if not is_script and _is_there(path):  # the script runs where it never comes to that import
            says = f"{e.reason}: what the script imports of it fails; it keeps its bytes"
            report.attention = [Note(e.line, e.column, "PTM704", says)]
        else:
            report.error, report.plan = str(e), "refused"
        return Migrated(path, root, None, None, report)
    except FAULTS as fault:  # one of ours: the other files go on, and this one keeps its bytes
        report.error = f"{path}:1:1: migrating it failed ({type(fault).__name__}: {fault}); please report this"
        report.plan = "refused"
        return Migrated(path, root, None, None, report)
    finally:
        forget_parsed()
    report.plan, report.edits, report.attention = result.plan, result.edits, result.attention
    report.changed = result.text != source.text
    return Migrated(path, root, source, result, report)


def _is_there(path: Path) -> bool:
    """Whether a file can be read, if not parsed."""
    try:
        read_source(path)
    except SourceError:
        return False
    return True


def as_it_is(path: Path, root: Path, options: Options) -> Migrated:
    """A module of a script that is refused: it keeps its bytes as well, or half of a program would be changed."""
    report = FileReport(str(path))
    try:
        source = read_source(path)
    except SourceError as e:
        report.error, report.plan = str(e), "refused"
        return Migrated(path, root, None, None, report)
    if mentions_torch(source.raw):
        report.attention = what_is_there(source.text, options)
    return Migrated(path, root, source, Result(source.text, "none"), report)


def untouched(path: Path, root: Path) -> Migrated:
    """A file that the migrated script does not read any more, and others do."""
    source = read_source(path)
    return Migrated(path, root, source, Result(source.text, "none"), FileReport(str(path)))


def note_nothing(m: Migrated) -> str | None:
    """One line for a script that has nothing to migrate."""
    if m.source is not None and not mentions_torch(m.source.raw):
        return f"{m.path}: no torch in this file: nothing to do"
    if m.result is not None and m.result.reason:
        return f"{m.path}: {m.result.reason}: nothing to do"
    if m.result is not None and not (m.report.changed or m.report.edits or m.report.attention):
        return f"{m.path}: nothing to do"
    return None

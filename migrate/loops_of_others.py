"""Scripts whose loop stands in another file: it comes into the script, or is kept where it is."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from .bring_in import bring_in
from .elsewhere import Elsewhere
from .facts.source import SourceError, mentions_torch, read_source
from .given import Stays
from .joined import Brought, Place
from .one_file import File, Migrated, bytes_of, migrate_file, real
from .report import Edit, FileReport, Note, at_line
from .result import Options
from .sources import Imports, python_files

IMPORTS_TRAINER = re.compile(rb"ptmigrate\.runtime import (\([^)]*|[^(\n]*)\bTrainer\b")
# a kept loop names its Runtime; others ask for it where they place something
OF_KEPT_LOOP = re.compile(rb"^\w+ = \w*Runtime\w*\.shared\(\)[ \t]*(#.*)?\r?$", re.M)


def with_its_loop(
    path: Path,
    root: Path,
    options: Options,
    elsewhere: Elsewhere | None,
    imports: Imports,
    files: list[File],
    why: list[Note],
) -> tuple[Migrated, Brought] | None:
    """A script lifted with the loop that another file has, where that can be; the other file comes later in `files`.

    `why`: where it cannot be, what is told of that.
    """
    before = {imports.real(p) for p, _, _ in files[: [p for p, _, _ in files].index(path)]}
    if options.plan == "loop" or not options.wants("PTM700"):
        return None
    try:
        source = read_source(path)
        readers = {imports.real(p): p for p, _, _ in files}
        beside = {real(p): p for p in python_files(root)} if options.in_place else {}
        others = [p for key, p in beside.items() if key not in readers]
        brought = bring_in(path, source.text, imports, list(readers.values()), others)
    except SourceError:
        return None
    except Stays as stays:
        why.append(Note(1, 1, "PTM701", f"the loop is kept in its own file: {stays}"))
        return None
    if brought is None or before & {imports.real(p) for p in brought.left}:
        why.append(Note(1, 1, "PTM701", "the loop is kept in its own file: this one reaches it through others"))
        return None
    also = _trained_elsewhere(path, brought, imports)
    if also is not None:
        says = f"{also.name} trains, too, and what it is given is this file's to place"
        why.append(Note(1, 1, "PTM701", f"the loop is kept in its own file: {says}"))
        return None
    m = migrate_file(path, root, True, options, False, elsewhere, brought.text)
    if m.result is None or m.result.plan not in ("module", "manual"):
        why += [_of_its_file(n, brought) for n in m.report.attention if n.code == "PTM701"]
        return None
    try:
        m.result.text.encode(source.encoding)
    except UnicodeEncodeError:
        return None
    return m, brought


def _trained_elsewhere(path: Path, brought: Brought, imports: Imports) -> Path | None:
    """A file that has a training of its own, which stays there, beside the one that came into the script."""
    came = {real(p) for p in (*brought.left, *brought.untouched, path)}
    trains = (p for p in imports.followed(path) if real(p) not in came and b".backward(" in bytes_of(p))
    return next(trains, None)


def _of_its_file(note: Note, brought: Brought) -> Note:
    """What kept a loop that came, told where the script imports it, with the file and the line that decided."""
    place = next((p for p in brought.places if p.first <= note.line <= p.last), None)
    if place is None:
        return at_line(note, brought.line)
    at = next(line for line, _, path in brought.names if path == place.path)
    line = place.line + note.line - place.first
    return replace(note, line=at, column=1, message=f"{note.message} ({place.path.name}, line {line})")


def _line_there(place: Place, brought: Brought, line: int) -> int:
    """The line of the file that a place came from; of the script, where it is none of those."""
    return place.line + line - place.first if place.first <= line <= place.last else brought.line(line)


def share_out(report: FileReport, brought: Brought, told: dict[Path, FileReport]) -> None:
    """Say of each edit and note the file and the line that it is about."""
    for name in ("edits", "attention"):
        own = []
        for note in getattr(report, name):
            place = next((p for p in brought.places if p.first <= note.line <= p.last), None)
            if place is None:
                own.append(at_line(note, brought.line))
                continue
            other = told.setdefault(real(place.path), FileReport(str(place.path)))
            getattr(other, name).append(at_line(note, partial(_line_there, place, brought)))
        setattr(report, name, own)
    for at, line, name in brought.packages:
        says = f"{name}() is not handed on any more: its loop is in {Path(report.path).name}"
        told.setdefault(real(at), FileReport(str(at))).edits.append(Edit(line, 1, "PTM700", says))
    for line, name, path in brought.names:
        says = f"{name}() came from {path.name}: the lift reads its loop here"
        report.edits.append(Edit(line, 1, "PTM700", says))


def kept_projects(files: list[File], imports: Imports) -> set[Path]:
    """Files that make what a loop in another file trains: that loop is kept, and so is what these files place.

    A file that says nothing of backward() imports, through others, one that does, or did before it was lifted.
    """
    raw = {imports.real(path): bytes_of(path) for path, _, _ in files}
    trains = {key for key, data in raw.items() if b".backward(" in data or _is_lifted(data)}
    kept: set[Path] = set()
    for path, _, is_script in files:
        data = raw[imports.real(path)]
        if not (is_script and trains) or imports.real(path) in trains or _is_lifted(data):
            continue
        project = imports.project(path) - {imports.real(path)}
        of_torch = any(mentions_torch(raw[key]) for key in (*project, imports.real(path)) if key in raw)
        if project & trains and of_torch:
            kept.update(p for p, _, script in files if p == path or (imports.real(p) in project and not script))
    return kept


def _is_lifted(data: bytes) -> bool:
    """Whether the loop of a script became a Trainer's in an earlier run: it needs that of no other file."""
    return IMPORTS_TRAINER.search(data) is not None and OF_KEPT_LOOP.search(data) is None

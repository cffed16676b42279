"""A migration of one script with its local modules, or of a folder: what is read and what it becomes."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from .already import already_migrated
from .awaited import Awaited
from .bring_in import bring_in
from .codemods.mend_async import mend, renamed
from .codemods.once import Once
from .elsewhere import Elsewhere, of_projects
from .facts.script import Facts, facts_of
from .facts.source import Source, SourceError, mentions_torch, parse, parses, read_bytes, read_source
from .given import Stays
from .joined import Brought
from .lift.placing import draws_batches
from .lifted import FAULTS
from .migrate import has_work, migrate_text, what_is_there
from .read_by_others import read_by_others
from .report import Edit, FileReport, Note
from .result import Options, Result
from .sources import Imports, followed, python_files
from .taken_names import TakenNames
from .untrained import untrained

IMPORTS_TRAINER = re.compile(rb"ptmigrate\.runtime import (\([^)]*|[^(\n]*)\bTrainer\b")


# how a file was migrated: its options, whether its loop was kept, its text and what came in where it had others
How = tuple[Options, bool, str | None, Brought | None]


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


def collect(paths: Iterable[Path], output: Path | None = None) -> list[tuple[Path, Path, bool]]:
    """(file, root, whether it is a script) for scripts with the modules that they import, and for folders.

    `output`: where results go; what an earlier run has left in it is no part of a folder around it.
    A script and its modules have one root, so that they lie to one another in the output as they do in the project.
    """
    found: dict[Path, tuple[Path, Path, bool]] = {}
    for path in paths:
        if path.is_dir():
            within = output is not None and _key(path) in _key(output).parents
            for f in python_files(path):
                if not (within and output is not None and _key(output) in _key(f).parents):
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
            parse(Source(source.path, source.raw, tried, source.encoding, source.bom))  # raises with place and reason
        result = migrate_text(source.text if joined is None else joined, options, is_script, kept, elsewhere)
        ast.parse(result.text)
    except RecursionError:
        report.error, report.plan = f"{path}:1:1: nested too deeply to be migrated", "refused"
        return Migrated(path, root, None, None, report)
    except SourceError as e:
        report.error, report.plan = str(e), "refused"
        return Migrated(path, root, None, None, report)
    except FAULTS as fault:  # one of ours: the other files go on, and this one keeps its bytes
        report.error = f"{path}:1:1: migrating it failed ({type(fault).__name__}: {fault}); please report this"
        report.plan = "refused"
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
    for path in untrained([path for path, _, _ in files], imports, _bytes):
        elsewhere[path] = replace(elsewhere.get(path, Elsewhere()), untrained=True)
    for path, root in _imported(files, imports):
        readers = partial(_may_import, files, root, options)
        taken = TakenNames(path, readers, imports) if len(files) > 1 else None
        elsewhere[path] = replace(elsewhere.get(path, Elsewhere()), imported=True, taken=taken)
    told: dict[Path, FileReport] = {}  # of other files, what came from them into a script
    left: dict[Path, str] = {}  # and their texts without it
    untouched: set[Path] = set()
    how: list[How] = []
    for path, root, is_script in files:
        if tick is not None:
            tick(path)
        key = _key(path)
        why: list[Note] = []
        keeps, brought = path in kept or (loop and not is_script), None
        joined = (
            _joined(path, root, options, elsewhere.get(path), imports, files, why)
            if path in kept and is_script
            else None
        )
        if joined is not None:
            m, brought = joined
            left.update({_key(p): text for p, text in brought.left.items()})
            untouched |= {_key(p) for p in brought.untouched}
            _share_out(m.report, brought, told)
            _add_mended(m)
            kept -= {p for p, _, _ in files if _key(p) in imports.project(path)}
        elif key in untouched:
            m = _untouched(path, root)
        elif refused and not is_script:
            m = _as_it_is(path, root, options)
        else:
            m = migrate_file(path, root, is_script, options, keeps, elsewhere.get(path), left.get(key))
            if key in left:
                _add_mended(m)
        _add_told(m.report, told.get(key))
        m.report.attention += why if m.report.plan in ("loop", "none") else []
        if is_script:
            refused, loop = m.report.plan == "refused", m.report.plan == "loop" or _carried(m)
        done.append(m)
        how.append(
            (options, keeps, left.get(key), None) if brought is None else (options, False, brought.text, brought)
        )
    again, by_all = replace(options, of_lifted=True), Awaited(done, imports)
    for i in _run_by_all(done, options, imports):
        (path, root, is_script), key = files[i], _key(files[i][0])
        if key in untouched:
            continue
        known = replace(
            elsewhere.get(path) or Elsewhere(),
            awaited=by_all.awaited(path),
            together=by_all.together(path),
            apart=by_all.apart(path),
        )
        done[i] = migrate_file(path, root, is_script, again, False, known, left.get(key))
        _add_told(done[i].report, told.get(key))
        how[i] = again, False, left.get(key), None
    _keep_what_others_read(done, files, how, elsewhere, told, imports)
    _tell_of_shared(done, imports)
    return done


def _keep_what_others_read(
    done: list[Migrated],
    files: list[tuple[Path, Path, bool]],
    how: list[How],
    elsewhere: dict[Path, Elsewhere],
    told: dict[Path, FileReport],
    imports: Imports,
) -> None:
    """Files once more, as they were migrated before, of which an option went that another one still reads."""
    for i, read in list(read_by_others(done, imports)):
        (path, root, is_script), (own, keeps, text, brought) = files[i], how[i]
        said = elsewhere.get(path, Elsewhere())
        done[i] = migrate_file(path, root, is_script, own, keeps, replace(said, reads=said.reads | read), text)
        if brought is not None:
            _share_out(done[i].report, brought, {})
        _add_told(done[i].report, told.get(_key(path)))


def _tell_of_shared(done: list[Migrated], imports: Imports) -> None:
    """A script that is refused runs with the modules that it was written with, which others of the folder share."""
    changed = {_key(m.path): m.path.name for m in done if m.report.changed}
    for m in done:
        stays = m.report.plan == "refused" and m.result is not None
        shared = sorted(changed[key] for key in imports.project(m.path) & changed.keys()) if stays else []
        if shared:
            says = f"{', '.join(shared)}, which it imports, changed: run it with the files as they were"
            m.report.attention.append(Note(1, 1, "PTM704", f"refused, and {says}"))


def _imported(files: list[tuple[Path, Path, bool]], imports: Imports) -> list[tuple[Path, Path]]:
    """The modules of a script, and the scripts that others import: what they define is read there."""
    scripts = [path for path, _, is_script in files if is_script]
    read = set[Path]().union(*(imports.direct(p, p) for p in scripts)) if len(scripts) > 1 else set()
    return [(path, root) for path, root, is_script in files if not is_script or _key(path) in read]


def _may_import(files: list[tuple[Path, Path, bool]], root: Path, options: Options) -> Iterator[Path]:
    """The files that may take names from one of them: where it is rewritten itself, all that lie beside it, too."""
    yield from (path for path, _, _ in files)
    if options.in_place:
        yield from python_files(root)


def _run_by_all(done: list[Migrated], options: Options, imports: Imports) -> list[int]:
    """Files that print, save or ask for paths below a script that was migrated now: every process runs them; and those
    with loops over batches. Below a kept loop those without torch, which nothing else here has looked at.
    """
    changed = [m for m in done if m.report.changed]
    lifted = [m for m in changed if m.report.plan in ("module", "manual")]
    looped = [m for m in changed if m.report.plan == "loop"]
    if not (lifted or looped) or options.framework != "ptmigrate" or not options.wants(Once.code):
        return []
    below, loops = (set[Path]().union(*(imports.project(m.path) for m in ms)) for ms in (lifted, looped))
    found = []
    for i, m in enumerate(done):
        text = m.result.text if m.result is not None and m.report.plan in ("none", "definitions") else ""
        if not text or m.source is None:
            continue
        of_torch = mentions_torch(m.source.raw)
        if not (_key(m.path) in below or (_key(m.path) in loops and not of_torch)):
            continue
        if not (of_torch or parses(text)):  # nothing has read it yet, and it may be of another Python
            continue
        if already_migrated(Facts(mend(m.source.text)[0])):
            continue
        facts = facts_of(text)
        once = Once(waits=False)
        shows = any(True for _ in once.plan(facts)) or any(True for _ in once.each_answers(facts))
        shows = shows or once.may_write(facts)
        found += [i] if shows or draws_batches(facts) else []
    return found


def _add_mended(m: Migrated) -> None:
    """Say of a file of which the text was mended before anything came into it, or went out of it."""
    if m.source is not None:
        m.report.edits = [*mend(m.source.text)[1], *m.report.edits]


def _add_told(report: FileReport, more: FileReport | None) -> None:
    """What came from a file into a script is told of that file too."""
    if more is not None:
        report.edits += more.edits
        report.attention += more.attention
        report.plan = "definitions" if report.plan == "none" else report.plan


def _joined(
    path: Path,
    root: Path,
    options: Options,
    elsewhere: Elsewhere | None,
    imports: Imports,
    files: list,
    why: list[Note],
) -> tuple[Migrated, Brought] | None:
    """A script lifted with the loop that another file has, where that can be; the other file comes later in `files`.

    `why`: where it cannot be, what is told of that.
    """
    before = {_key(p) for p, _, _ in files[: [p for p, _, _ in files].index(path)]}
    if options.plan == "loop" or not options.wants("PTM700"):
        return None
    try:
        source = read_source(path)
        readers = {_key(p): p for p, _, _ in files}
        beside = {_key(p): p for p in python_files(root)} if options.in_place else {}
        others = [p for key, p in beside.items() if key not in readers]
        brought = bring_in(path, source.text, imports, list(readers.values()), others)
    except SourceError:
        return None
    except Stays as stays:
        why.append(Note(1, 1, "PTM701", f"the loop is kept in its own file: {stays}"))
        return None
    if brought is None or before & {_key(p) for p in brought.left}:
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
    came = {_key(p) for p in (*brought.left, *brought.untouched, path)}
    trains = (p for p in imports.followed(path) if _key(p) not in came and b".backward(" in _bytes(p))
    return next(trains, None)


def _of_its_file(note: Note, brought: Brought) -> Note:
    """What kept a loop that came, told where the script imports it, with the file and the line that decided."""
    place = next((p for p in brought.places if p.first <= note.line <= p.last), None)
    if place is None:
        return replace(note, line=brought.line(note.line))
    at = next(line for line, _, path in brought.names if path == place.path)
    line = place.line + note.line - place.first
    return replace(note, line=at, column=1, message=f"{note.message} ({place.path.name}, line {line})")


def _share_out(report: FileReport, brought: Brought, told: dict[Path, FileReport]) -> None:
    """Say of each edit and note the file and the line that it is about."""
    for name in ("edits", "attention"):
        own = []
        for note in getattr(report, name):
            place = next((p for p in brought.places if p.first <= note.line <= p.last), None)
            if place is None:
                own.append(replace(note, line=brought.line(note.line)))
                continue
            other = told.setdefault(_key(place.path), FileReport(str(place.path)))
            getattr(other, name).append(replace(note, line=place.line + note.line - place.first))
        setattr(report, name, own)
    for line, name, path in brought.names:
        says = f"{name}() came from {path.name}: the lift reads its loop here"
        report.edits.append(Edit(line, 1, "PTM700", says))


def _kept_projects(files: list[tuple[Path, Path, bool]], imports: Imports) -> set[Path]:
    """Files that make what a loop in another file trains: that loop is kept, and so is what these files place.

    A file that says nothing of backward() imports, through others, one that does, or did before it was lifted.
    """
    raw = {_key(path): _bytes(path) for path, _, _ in files}
    trains = {key for key, data in raw.items() if b".backward(" in data or _is_lifted(data)}
    kept: set[Path] = set()
    for path, _, is_script in files:
        data = raw[_key(path)]
        named = mentions_torch(data) or any(key.stem.encode() in data for key in trains)
        if not (is_script and trains and named) or _key(path) in trains or _is_lifted(data):
            continue
        project = imports.project(path) - {_key(path)}
        of_torch = any(mentions_torch(raw[key]) for key in (*project, _key(path)) if key in raw)
        if project & trains and of_torch:
            kept.update(p for p, _, script in files if p == path or (_key(p) in project and not script))
    return kept


def _is_lifted(data: bytes) -> bool:
    """Whether the loop of a script became a Trainer's in an earlier run: it needs that of no other file."""
    return IMPORTS_TRAINER.search(data) is not None and b"Runtime.shared()" not in data


def _bytes(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except SourceError:
        return b""


def _carried(m: Migrated) -> bool:
    """Whether the runtime carries the loop of a script already."""
    return m.source is not None and "Runtime.shared()" in m.source.text


def _as_it_is(path: Path, root: Path, options: Options) -> Migrated:
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


def _untouched(path: Path, root: Path) -> Migrated:
    """A file that the migrated script does not read any more, and others do."""
    source = read_source(path)
    return Migrated(path, root, source, Result(source.text, "none"), FileReport(str(path)))


def note_nothing(m: Migrated) -> str | None:
    """One line for a script that has nothing to migrate."""
    if m.source is not None and not mentions_torch(m.source.raw):
        return f"{m.path}: no torch in this file: nothing to do"
    if m.result is not None and m.result.reason:
        return f"{m.path}: {m.result.reason}: nothing to do"
    return None


__all__ = ["Migrated", "Note", "collect", "migrate_all", "migrate_file", "note_nothing"]

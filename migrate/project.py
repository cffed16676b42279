"""A migration of one script with its local modules, or of a folder: what is read and what it becomes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from .already import already_migrated, speaks_of_it
from .awaited import Awaited
from .codemods.mend_async import mend
from .codemods.once import Once
from .elsewhere import Elsewhere, of_projects
from .facts.script import Facts, facts_of
from .facts.source import mentions_torch, parses
from .joined import Brought
from .lift.placing import draws_batches
from .loops_of_others import OF_KEPT_LOOP, kept_projects, share_out, with_its_loop
from .one_file import File, Migrated, as_it_is, bytes_of, migrate_file, real, untouched
from .order import importing_first
from .read_by_others import read_by_others
from .report import FileReport, Note
from .result import Options
from .side_by_side import side_by_side
from .sources import Imports, followed, python_files
from .taken_names import TakenNames
from .untrained import untrained

# how a file was migrated: its options, whether its loop was kept, its text and what came in where it had others
How = tuple[Options, bool, str | None, Brought | None]


def collect(paths: Iterable[Path], output: Path | None = None) -> list[File]:
    """(file, root, whether it is a script) for scripts with the modules that they import, and for folders.

    `output`: where results go; what an earlier run has left in it is no part of a folder around it.
    A script and its modules have one root, so that they lie to one another in the output as they do in the project.
    """
    found: dict[Path, File] = {}
    for path in paths:
        if path.is_dir():
            within = output is not None and real(path) in real(output).parents
            for f in python_files(path):
                if not (within and output is not None and real(output) in real(f).parents):
                    found.setdefault(real(f), (f, path, True))
            continue
        modules = list(followed(path))
        root = Path(os.path.commonpath([_absolute(f.parent) for f in (path, *modules)]))
        root = path.parent if root == _absolute(path.parent) else root
        found[real(path)] = (path, root, True)
        for module in modules:
            found.setdefault(real(module), (module, root, False))
    return list(found.values())


def migrate_all(
    files: list[File], options: Options, tick: Callable[[Path], None] | None = None, jobs: int | None = None
) -> list[Migrated]:
    """What each file becomes, in their order; `tick` is told of each before it is migrated.

    `jobs`: how many processes work on a folder; as many as pay where that is None. The result is the same.
    """
    imports = Imports()
    project = Project(importing_first(files, imports), options, imports)
    refused = loop = False  # the script whose modules these are
    with side_by_side(project.by_themselves(), project.alone, jobs) as project.ready:
        for file in project.files:
            if tick is not None:
                tick(file[0])
            m = project.migrate(file, refused, loop)
            if file[2]:
                refused, loop = m.report.plan == "refused", m.report.plan == "loop" or _carried(m)
    project.migrate_again()
    project.keep_what_others_read()
    project.tell_of_shared()
    given = {path: i for i, (path, _, _) in enumerate(files)}
    return sorted(project.done, key=lambda m: given[m.path])


class Project:
    """Files that are migrated together: what each has to know of the others, and what has come of each."""

    def __init__(self, files: list[File], options: Options, imports: Imports) -> None:
        self.files, self.options, self.imports = files, options, imports
        self.kept = kept_projects(files, self.imports)
        self.elsewhere = self._elsewhere()
        self.done: list[Migrated] = []
        self.how: list[How] = []
        self.told: dict[Path, FileReport] = {}  # of other files, what came from them into a script
        self.left: dict[Path, str] = {}  # and their texts without it
        self.untouched: set[Path] = set()
        self.beneath: set[Path] = set()  # what scripts import whose loop was kept
        self.ready: Callable[[Path], Migrated | None] = lambda _: None  # see `side_by_side`

    def _elsewhere(self) -> dict[Path, Elsewhere]:
        """What the other files say of each."""
        paths = [path for path, _, _ in self.files]
        found = of_projects(paths, self.imports)
        for path in untrained(paths, self.imports, bytes_of):
            found[path] = replace(found.get(path, Elsewhere()), untrained=True)
        for path, root in self._imported():
            readers = partial(self._may_import, root)
            taken = TakenNames(path, readers, self.imports) if len(paths) > 1 else None
            found[path] = replace(found.get(path, Elsewhere()), imported=True, taken=taken)
        for path in (p for p, _, is_script in self.files if is_script and self.options.in_place):
            beside = TakenNames(path, partial(path.parent.glob, "*.py"), self.imports)
            found[path] = replace(found.get(path, Elsewhere()), beside=beside)
        return found

    def _imported(self) -> list[tuple[Path, Path]]:
        """The modules of a script, and the scripts that others import: what they define is read there."""
        scripts = [path for path, _, is_script in self.files if is_script]
        read = set[Path]().union(*(self.imports.direct(p, p) for p in scripts)) if len(scripts) > 1 else set()
        return [(path, root) for path, root, is_script in self.files if not is_script or real(path) in read]

    def _may_import(self, root: Path) -> Iterator[Path]:
        """The files that may take names from one: where it is rewritten itself, all that lie beside it, too."""
        yield from (path for path, _, _ in self.files)
        if self.options.in_place:
            yield from python_files(root)

    def by_themselves(self) -> list[Path]:
        """Scripts that come to be migrated as they are, unless another one takes something from them first."""
        return [path for path, _, is_script in self.files if is_script and path not in self.kept]

    def alone(self, path: Path) -> Migrated:
        """A script as it is, with what the others say of it."""
        root = next(root for other, root, _ in self.files if other == path)
        return migrate_file(path, root, True, self.options, False, self.elsewhere.get(path))

    def migrate(self, file: File, refused: bool, kept: bool) -> Migrated:
        """A file for the first time. `refused`, `kept`: whether the script whose module it is was, or its loop."""
        path, root, is_script = file
        if is_script and self._is_of_kept(path):  # of a folder, where each file stands for itself
            self.files[len(self.done)] = path, root, is_script = path, root, False
            kept = True
        why: list[Note] = []
        known, brought = self.elsewhere.get(path), None
        keeps = path in self.kept or (kept and not is_script)
        if path in self.kept and is_script:
            brought = with_its_loop(path, root, self.options, known, self.imports, self.files, why)
        if brought is not None:
            m = self._with_what_came(*brought)
        elif real(path) in self.untouched:
            m = untouched(path, root)
        elif refused and not is_script:
            m = as_it_is(path, root, self.options)
        else:
            text = self.left.get(real(path))
            ready = self.ready(path) if is_script and text is None and not keeps else None
            m = ready or migrate_file(path, root, is_script, self.options, keeps, known, text)
            if text is not None:
                _add_mended(m)
        _add_told(m.report, self.told.get(real(path)))
        m.report.attention += why if m.report.plan in ("loop", "none") else []
        came = None if brought is None else brought[1]
        text = self.left.get(real(path)) if came is None else came.text
        self.how.append((self.options, keeps and came is None, text, came))
        self.done.append(m)
        if is_script and (m.report.plan == "loop" or path in self.kept or _carried(m)):
            self.beneath |= self.imports.project(path) - {real(path)}
        return m

    def _is_of_kept(self, path: Path) -> bool:
        """Whether a kept loop works with what a file defines, which nothing else places, and that trains nothing."""
        mine = real(path)
        return mine in self.beneath and path not in self.kept and b".backward(" not in bytes_of(path)

    def _with_what_came(self, m: Migrated, brought: Brought) -> Migrated:
        """A script that has its loop from another file now, which is left without it."""
        self.left.update({real(p): text for p, text in brought.left.items()})
        self.untouched |= {real(p) for p in brought.untouched}
        share_out(m.report, brought, self.told)
        _add_mended(m)
        self.kept -= {p for p, _, _ in self.files if real(p) in self.imports.project(m.path)}
        return m

    def migrate_again(self) -> None:
        """What every process runs below a script that was lifted, as that asks it to be."""
        again, by_all = replace(self.options, of_lifted=True), Awaited(self.done, self.imports)
        for i in _run_by_all(self.done, self.options, self.imports):
            path, root, is_script = self.files[i]
            if real(path) in self.untouched or (self.how[i][1] and mentions_torch(bytes_of(path))):
                continue  # what a kept loop shares was migrated as that asks, and places what it makes itself
            known = replace(
                self.elsewhere.get(path) or Elsewhere(),
                awaited=by_all.awaited(path),
                together=by_all.together(path),
                apart=by_all.apart(path),
            )
            text = self.left.get(real(path))
            self.done[i] = migrate_file(path, root, is_script, again, False, known, text)
            _add_told(self.done[i].report, self.told.get(real(path)))
            self.how[i] = again, False, text, None

    def keep_what_others_read(self) -> None:
        """Files once more, as they were migrated before, of which an option went that another one still reads."""
        for i, read in list(read_by_others(self.done, self.imports)):
            (path, root, is_script), (own, keeps, text, brought) = self.files[i], self.how[i]
            said = self.elsewhere.get(path, Elsewhere())
            known = replace(said, reads=said.reads | read)
            self.done[i] = migrate_file(path, root, is_script, own, keeps, known, text)
            if brought is not None:
                share_out(self.done[i].report, brought, {})
            _add_told(self.done[i].report, self.told.get(real(path)))

    def tell_of_shared(self) -> None:
        """A script that is refused runs with the modules that it was written with, which others of the folder share."""
        changed = {real(m.path): m.path.name for m in self.done if m.report.changed}
        for m in self.done:
            stays = m.report.plan == "refused" and m.result is not None
            shared = sorted(changed[key] for key in self.imports.project(m.path) & changed.keys()) if stays else []
            if shared:
                says = f"{', '.join(shared)}, which it imports, changed: run it with the files as they were"
                m.report.attention.append(Note(1, 1, "PTM704", f"refused, and {says}"))


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


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
        if not (real(m.path) in below or (real(m.path) in loops and not of_torch)):
            continue
        if not (of_torch or parses(text)):  # nothing has read it yet, and it may be of another Python
            continue
        if speaks_of_it(m.source.text) and already_migrated(Facts(mend(m.source.text)[0])):
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


def _carried(m: Migrated) -> bool:
    """Whether the runtime carries the loop of a script already."""
    return m.source is not None and OF_KEPT_LOOP.search(m.source.raw) is not None

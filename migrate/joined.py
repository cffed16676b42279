"""A script's text with definitions of other files in it, and those files' texts without them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .facts.nodes import walk
from .facts.script import Facts
from .facts.text import lines_of
from .given import Stays, device_of, imports_of, parts_of, renamed, same_value
from .lift.shape.edits import Edits
from .lift.splice import Splice
from .line_map import line_map
from .packages import HandedOn
from .unread_imports import cuts_of, without_unread_imports

Definition = ast.FunctionDef | ast.ClassDef
OF_A_FILE = {"__file__", "__name__", "__package__", "__spec__", "__doc__"}


@dataclass(frozen=True)
class Place:
    """Lines of the script's new text, and the file and the line that they come from."""

    first: int
    last: int
    path: Path
    line: int


@dataclass
class Brought:
    """`text`: the script with what came; `left`: the other files without it; `names`: what came from where;
    `untouched`: files that other programs read, which the script has no more to do with.
    """

    text: str
    left: dict[Path, str]
    places: list[Place]
    names: list[tuple[int, str, Path]]  # line of the script's import, name, file
    line: Callable[[int], int]  # of the script, for one of the new text
    untouched: frozenset[Path] = frozenset()
    packages: tuple[tuple[Path, int, str], ...] = ()  # file, line and name of what a package does not hand on any more


@dataclass
class LocalModule:
    """A local module that the script imports, and which of its definitions come."""

    path: Path
    name: str
    package: list[str]
    facts: Facts
    stars: dict[str, str] = field(default_factory=dict)  # what `from ... import *` gives it, with the import of each
    own: dict[str, Definition] = field(default_factory=dict)
    comes: dict[str, Definition] = field(default_factory=dict)
    here: dict[str, str] = field(default_factory=dict)  # its names that have others in the script
    stays: bool = False  # as it is, for other programs: what comes is a copy
    is_starred: bool = False  # whether the script has all of its names
    by_star: set[str] = field(default_factory=set)  # its definitions that the script reads by that
    through: list[HandedOn] = field(default_factory=list)  # those that packages hand on to the script

    def __post_init__(self) -> None:
        self.own = {s.name: s for s in self.facts.tree.body if isinstance(s, (ast.FunctionDef, ast.ClassDef))}


class JoinedScript:
    """The script's text with the definitions of `modules` in it."""

    def __init__(self, facts: Facts, modules: list[LocalModule], silent: set[Path], stars: dict[str, str]) -> None:
        self.facts, self.modules, self.silent, self.stars = facts, modules, silent, stars
        self.edits = Edits(facts)
        self.wanted: dict[str, None] = {}  # import statements
        self.given: dict[str, list[str]] = {}  # names, and the statements that give them
        self.devices: dict[str, None] = {}  # `device = torch.device(...)`
        self.asked_at: list[ast.stmt] = []
        self.brought: list[tuple[int, str, Path]] = []
        self.unbound: set[str] = set()  # names that no file gives a value: builtins, or an error where they are read

    def joined(self) -> Brought:
        coming = [name for m in self.modules for name in m.comes]
        of_others = self.stars.keys() - {name for m in self.modules for name in m.by_star}
        if len(coming) != len(set(coming)) or set(coming) & of_others:
            raise Stays("two definitions that would come have one name")
        for m in self.modules:
            for d in m.comes.values():
                self._check(m, d)
                for name in sorted(self._outer(m, d)):
                    self._want(m, name)
        for name in sorted(self.unbound & {*self.given, *coming, *self._set_from_outside()}):
            raise Stays(f"`{name}` is another thing there")
        for s in self.facts.tree.body:
            if isinstance(s, (ast.Import, ast.ImportFrom)):
                self._change(s)
        first = self.asked_at[0] if self.asked_at else None
        if first is None:
            raise Stays("nothing imports it at the top")
        self.edits.replace_lines((first.end_lineno or 1) + 1, first.end_lineno or 1, list(self.wanted))
        for m in self.modules:
            self._through_the_module(m)
        at = self._room()
        lines, starts = self._definitions()
        lines = ["", "", *lines] if at > 1 and self.facts.text.lines[at - 2].strip() else lines
        self.edits.replace_lines(at, at - 1, lines)
        text = self.edits.done()
        Facts(text)
        left = {m.path: m.facts.text.text if m.stays else _without(m) for m in self.modules}
        back = line_map(text, self.facts.text.text)
        untouched = frozenset(m.path for m in self.modules if m.stays)
        return Brought(text, left, _placed(text, starts), self.brought, back, untouched)

    def _check(self, m: LocalModule, d: Definition) -> None:
        scopes = self.facts.scopes
        if walk(d, ast.Global) or len(m.facts.scopes.module.stores[d.name]) != 1:
            raise Stays(f"`{d.name}` writes globals of its file, or is not its only thing of that name")
        future = any(isinstance(s, ast.ImportFrom) and s.module == "__future__" for s in m.facts.tree.body)
        if future and not any(isinstance(s, ast.ImportFrom) and s.module == "__future__" for s in self.facts.tree.body):
            raise Stays("annotations are read at once here")
        for scope in scopes.by_node.values():
            stores = [s for s in scope.stores.get(d.name, ()) if self._import_of(s, f"{m.name}.{d.name}") is None]
            if stores or d.name in scope.params or d.name in scope.globals:
                raise Stays(f"`{d.name}` is another thing here")

    def _import_of(self, store: ast.AST, full: str) -> ast.stmt | None:
        """The import statement at the top of the script that a name comes from, where it is `full`."""
        holder = store if isinstance(store, ast.stmt) else self.facts.scopes.statement_of(store)
        here = isinstance(holder, ast.ImportFrom) and holder in self.facts.tree.body
        named = here and any(f"{holder.module}.{a.name}" == full and not a.asname for a in holder.names)  # type: ignore
        return holder if named else None

    def _outer(self, m: LocalModule, d: Definition) -> set[str]:
        """The names of its file that a definition reads; what has no value there may have none here."""
        outer = set()
        counted = {n.id for c in walk(d, ast.comprehension) for n in walk(c.target, ast.Name)}
        for n in walk(d, ast.Name):
            scope = m.facts.scopes.of_name[n].lookup(n.id)
            if scope is m.facts.scopes.module:
                if n.id not in m.comes:
                    outer.add(n.id)
            elif scope is None and n.id in m.stars:
                outer.add(n.id)
            elif scope is None and n.id not in counted:
                bound = self.facts.scopes.module.binds(n.id) or n.id in self.stars
                if n.id in OF_A_FILE or bound:
                    raise Stays(f"`{n.id}` is another thing there")
                self.unbound.add(n.id)
        return outer

    def _set_from_outside(self) -> set[str]:
        """What may be given to a file as an attribute: `engine.options = options`."""
        files = (self.facts, *(m.facts for m in self.modules))
        stored = ((f, n) for f in files for n in f.walk(ast.Attribute) if not isinstance(n.ctx, ast.Load))
        return {n.attr for f, n in stored if not (f.classes.is_self(n.value) or _is_of_builtins(f, n.value))}

    def _want(self, m: LocalModule, name: str) -> None:
        """Imports that give the script a name of another file, the very same thing."""
        if any(name in scope.globals for scope in m.facts.scopes.by_node.values()):
            raise Stays(f"`{name}` changes there")
        own = imports_of(m.facts, name, m.package) if m.facts.scopes.module.binds(name) else []
        if name in m.stars and own != [] and not same_value(own, [m.stars[name]], name):
            raise Stays(f"`{name}` is given there by a star, and again")
        device = None if name in m.stars else device_of(m.facts, name)
        if device is not None and self._has_device(m, name, device):
            return
        star = [m.stars[name]] if name in m.stars else None
        made = own or star or [f"from {m.name} import {name}"]
        if any(made == [f"from {o.name} import {name}"] and name in o.comes for o in self.modules):
            return
        new = [i for i in made if i not in self._bound(name, made)] if self._agrees(m, name, made) else None
        if new is None:
            m.here[name] = self._another(m, name)
            new = [i for i in [renamed(made[0], name, m.here[name])] if i is not None and len(made) == 1]
            if not new:
                raise Stays(f"`{name}` is another thing here")
        self.given.setdefault(m.here.get(name, name), made)
        self.wanted.update(dict.fromkeys(new))

    def _has_device(self, m: LocalModule, name: str, device: str) -> bool:
        """Whether the script has the very same device by that name, or can: it comes with what reads it."""
        scope = self.facts.scopes.module
        free = name not in self.stars and not self._taken(name) and self.given.get(name, [device]) == [device]
        if "torch" in self.stars or imports_of(self.facts, "torch", []) not in (None, ["import torch"]):
            return False
        if scope.binds(name):
            if device_of(self.facts, name) != device or not self._before_its_use(name):
                return False
        elif free:
            self.wanted["import torch"] = None
            self.devices[device] = None
        self.given.setdefault(name, [device])
        return scope.binds(name) or free

    def _before_its_use(self, name: str) -> bool:
        """Whether a name of the script has its value before what comes is read."""
        names = {name for m in self.modules for name in m.comes}
        for s in self.facts.tree.body:
            if isinstance(s, (ast.Import, ast.ImportFrom, Definition)):
                continue
            if any(n is s for n in map(self.facts.scopes.statement_of, self.facts.scopes.module.stores[name])):
                return True
            if names_in(s) & names:
                return False
        return False

    def _agrees(self, m: LocalModule, name: str, made: list[str]) -> bool:
        """Whether the script may have these imports: nothing else gives the name another value."""
        if self._taken(name) or self.given.get(name, made) != made:
            return False
        star = self.stars.get(name, f"from {m.name} import {name}")
        if star != f"from {m.name} import {name}" and not same_value(made, [star], name):
            return False
        if not self.facts.scopes.module.binds(name):
            return True
        return same_value(made, imports_of(self.facts, name, []), name)

    def _bound(self, name: str, made: list[str]) -> list[str]:
        if name in self.stars:
            return made if self.stars[name].startswith("from ") else parts_of(self.stars[name])
        return (imports_of(self.facts, name, []) or []) if self.facts.scopes.module.binds(name) else []

    def _taken(self, name: str) -> bool:
        return any(name in o.comes for o in self.modules)

    def _another(self, m: LocalModule, name: str) -> str:
        """A name that nothing in the script or in what comes has."""
        known = {n.id for f in (self.facts, *(o.facts for o in self.modules)) for n in f.walk(ast.Name)}
        new = f"{m.name.split('.')[-1]}_{name}"
        while new in known or new in self.given or new in self.stars or self.facts.scopes.module.binds(new):
            new += "_"
        return new

    def _change(self, s: ast.Import | ast.ImportFrom) -> None:
        """Take what comes out of an import; the module is imported all the same where that does something."""
        for m in self.modules:
            if isinstance(s, ast.Import):
                through = any(a.name == m.name for a in s.names)
            else:
                through = any(f"{s.module}.{a.name}" == m.name for a in s.names)
            gone = [a for a in s.names if isinstance(s, ast.ImportFrom) and s.module == m.name and a.name in m.comes]
            stars = isinstance(s, ast.ImportFrom) and s.module == m.name and any(a.name == "*" for a in s.names)
            if not (through or gone or (stars and m.by_star & m.comes.keys())):
                continue
            self.asked_at.append(s)
            of_star = [name for name in m.comes if name in m.by_star]
            names = (
                [a.name for a in gone]
                or (of_star if stars else None)
                or [name for name in m.comes if name in asked(self.facts, m)]
            )
            self.brought += [(s.lineno, name, m.path) for name in names]
            if gone:
                if Splice(self.facts.text).shares_a_line(s):
                    raise Stays(f"the import of {m.name} shares its line")
                for a in gone:
                    self._by_its_own_name(a)
                if len(gone) < len(s.names):
                    for start, stop in cuts_of(self.facts.text, s, gone):
                        self.edits.replace(start, stop, "")
                else:
                    alone = [] if m.path in self.silent else [self._alone(m)]
                    self.edits.replace_lines(s.lineno, s.end_lineno or s.lineno, alone)

    def _alone(self, m: LocalModule) -> str:
        """What imports a module for what that does: not by a name that is of another thing, `train` of train.py."""
        top = m.name.partition(".")[0]
        bound = self.facts.scopes.module.stores.get(top, ())
        if not self._taken(top) and all(isinstance(self.facts.scopes.parents.get(n), ast.Import) for n in bound):
            return f"import {m.name}"
        return f"import {m.name} as {self._another(m, 'module')}"

    def _by_its_own_name(self, a: ast.alias) -> None:
        """`from engine import train_one_epoch as train`: what came is `train_one_epoch` here."""
        name, scopes = a.asname, self.facts.scopes
        if name in (None, a.name):
            return
        reads = [
            n for n in self.facts.walk(ast.Name) if n.id == name and scopes.scope_of(n).lookup(name) is scopes.module
        ]
        once = len(scopes.module.stores[name]) == 1 and all(isinstance(n.ctx, ast.Load) for n in reads)
        unknown = any(n.id == a.name and scopes.of_name[n].lookup(n.id) is None for n in self.facts.walk(ast.Name))
        if unknown or not once or any(name in scope.globals for scope in scopes.by_node.values()):
            raise Stays(f"`{name}`, the name here of `{a.name}`, is another thing too")
        for n in reads:
            self.edits.replace_node(n, a.name)

    def _through_the_module(self, m: LocalModule) -> None:
        """`engine.train(...)` is `train(...)` now."""
        for n in self.facts.walk(ast.Attribute):
            full = self.facts.names.resolve(n) or ""
            if full.startswith(f"{m.name}.") and full[len(m.name) + 1 :] in m.comes:
                if not isinstance(n.ctx, ast.Load):
                    raise Stays(f"`{full}` is given another value")
                self.edits.replace_node(n, n.attr)

    def _room(self) -> int:
        """The line that the definitions go before: the first definition or use below the imports."""
        last = max(self.facts.tree.body.index(s) for s in self.asked_at)
        names = {name for m in self.modules for name in m.comes}
        for s in self.facts.tree.body[last + 1 :]:
            guard = isinstance(s, (ast.If, ast.For, ast.While, ast.With, ast.Try))
            if isinstance(s, Definition) or guard or names_in(s) & names:
                if isinstance(s, (ast.Import, ast.ImportFrom)):
                    continue
                return Splice(self.facts.text).with_comments(s, (self.asked_at[-1].end_lineno or 1) + 1)[0]
        raise Stays("nothing uses it")

    def _definitions(self) -> tuple[list[str], list[tuple[str, Path, int]]]:
        """The lines that come, and of each definition its first line, its file and its line there."""
        lines = [*self.devices, "", ""] if self.devices else []
        starts = []
        for m in self.modules:
            splice = Splice(m.facts.text)
            text = lines_of(_with_names(m))
            for d in m.comes.values():
                if splice.shares_a_line(d):
                    raise Stays(f"`{d.name}` shares its line")
                first, last = splice.with_comments(d)
                own = text[first - 1 : last]
                starts.append(("\n".join(own), m.path, first))
                lines += [*own, "", ""]
        return lines, starts


def _is_of_builtins(facts: Facts, e: ast.expr) -> bool:
    """`builtins.print = print`: of every file, wherever it stands."""
    return facts.names.resolve(e) == "builtins" or getattr(e, "id", "") in ("builtins", "__builtins__")


def _with_names(m: LocalModule) -> str:
    """The text of a module with the names that it has in the script; each line stays where it is."""
    if not m.here:
        return m.facts.text.text
    edits, scopes = Edits(m.facts), m.facts.scopes
    for d in m.comes.values():
        for n in walk(d, ast.Name):
            if n.id in m.here and scopes.of_name[n].lookup(n.id) in (None, scopes.module):
                edits.replace_node(n, m.here[n.id])
    return edits.done()


def _without(m: LocalModule) -> str:
    """The text of a module without what came."""
    edits, splice = Edits(m.facts), Splice(m.facts.text)
    total = len(lines_of(m.facts.text.text))
    for d in m.comes.values():
        first, last = splice.with_comments(d)
        while last < total and not _line(m, last + 1).strip():
            last += 1
        edits.replace_lines(first, last, [])
    text = edits.done()
    return text if m.is_starred else without_unread_imports(m.facts, Facts(text))[0]


def _line(m: LocalModule, n: int) -> str:
    a, b = m.facts.text.line_span(n, n)
    return m.facts.text.text[a:b]


def _placed(text: str, starts: list[tuple[str, Path, int]]) -> list[Place]:
    lines, places = lines_of(text), []
    for own, path, line in starts:
        count = own.count("\n") + 1
        at = next(i for i in range(len(lines)) if "\n".join(lines[i : i + count]) == own)
        places.append(Place(at + 1, at + count, path, line))
    return places


def asked(facts: Facts, m: LocalModule) -> set[str]:
    """The definitions of a module that the script reads, by their names or through the module's."""
    read = {facts.names.resolve(n) for n in [*facts.walk(ast.Name), *facts.walk(ast.Attribute)]}
    return m.by_star | {name for name in m.own if f"{m.name}.{name}" in read}


def names_in(s: ast.AST, attributes: bool = True, texts: bool = True) -> set[str]:
    """Every name, attribute, imported name and short text in a statement."""
    found: set[str] = set()
    for n in walk(s):
        if isinstance(n, ast.Name):
            found.add(n.id)
        elif isinstance(n, ast.Attribute):
            found.update([n.attr] if attributes else [])
        elif isinstance(n, ast.alias):
            found.add(n.name)
        elif isinstance(n, ast.Constant) and isinstance(n.value, str):
            found.update([n.value] if texts else [])
    return found

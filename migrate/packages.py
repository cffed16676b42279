"""What a package hands on: `from utils import train` of a utils/__init__.py that says `from .engine import train`.

The script imports it of the file that defines it, which is the same thing: where it comes into the script from there,
the package does not hand it on any more.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .facts.script import Facts
from .given import module_of
from .lift.shape.edits import Edits
from .lift.splice import Splice
from .sources import Imports
from .unread_imports import cuts_of

INIT = "__init__.py"
Find = Callable[[tuple[str, ...]], Path | None]  # the file of a module
Read = Callable[[Path], Facts]
DEEP = 4  # packages that hand on what others do


@dataclass(frozen=True)
class HandedOn:
    """`module`: the name of the file that defines it; `through`: the packages' files that hand it on."""

    name: str
    module: str
    through: tuple[Path, ...]


def handed_on(path: Path, facts: Facts, imports: Imports, read: Read) -> dict[ast.ImportFrom, list[HandedOn]]:
    """What the script's own statements import of packages that have it of a file of theirs."""
    found: dict[ast.ImportFrom, list[HandedOn]] = {}
    find = partial(imports.module, path)
    for s in facts.tree.body:
        if isinstance(s, ast.ImportFrom) and s.module and not s.level and not Splice(facts.text).shares_a_line(s):
            named = [a.name for a in s.names if not a.asname and not _is_read_of(facts, s.module, a.name)]
            own = [o for name in named if (o := _origin(s.module, name, find, read)) is not None]
            if own:
                found[s] = own
    return found


def _is_read_of(facts: Facts, module: str, name: str) -> bool:
    """`utils.train(net)` beside `from utils import train`, or by a text: the package goes on having it."""
    through = any(facts.names.resolve(a) == f"{module}.{name}" for a in facts.attributes.get(name, ()))
    return through or any(n.value == name for n in facts.walk(ast.Constant))


def _origin(module: str, name: str, find: Find, read: Read, through: tuple[Path, ...] = ()) -> HandedOn | None:
    """Where a package has a name from, through other packages, too; None where it is its own, or does not show."""
    parts = tuple(module.split("."))
    at = find(parts)
    if at is None or len(through) == DEEP or (at.name != INIT and not through):
        return None
    facts = read(at)
    if at.name != INIT:
        return HandedOn(name, module, through) if _defines(facts, name) else None
    if any(n.value == name for n in facts.walk(ast.Constant)):  # `__all__` has it
        return None
    asked = _asked_of(facts, name)
    found = [_origin(module_of(s, list(parts), name), name, find, read, (*through, at)) for s in asked]
    known = [o for o in found if o is not None]
    return known[0] if len(known) == 1 else None


def _defines(facts: Facts, name: str) -> bool:
    stores = facts.scopes.module.stores.get(name, [])
    return len(stores) == 1 and isinstance(stores[0], (ast.FunctionDef, ast.ClassDef))


def _asked_of(facts: Facts, name: str) -> list[ast.ImportFrom]:
    """The statement at the top of a package's file that alone gives it a name which nothing there reads; where none
    names it, those with a star.
    """
    given = facts.scopes.module.stores.get(name, [])
    if any(n.id == name for n in facts.walk(ast.Name)) or len(given) > 1 or name.startswith("_"):
        return []
    if not given:
        return [s for s in facts.tree.body if isinstance(s, ast.ImportFrom) and s.names[0].name == "*"]
    s = facts.scopes.parents.get(given[0])
    if not isinstance(s, ast.ImportFrom) or s not in facts.tree.body or Splice(facts.text).shares_a_line(s):
        return []
    return [s] if isinstance(given[0], ast.alias) and given[0].asname is None and s.module else []


def by_their_files(facts: Facts, found: dict[ast.ImportFrom, list[HandedOn]], wanted: Iterable[str]) -> str:
    """The script's text where it imports these of the files that define them."""
    edits, wanted = Edits(facts), set(wanted)
    for s, handed in found.items():
        coming = [h for h in handed if h.name in wanted]
        modules = dict.fromkeys(h.module for h in coming)
        new = [f"from {module} import {', '.join(h.name for h in coming if h.module == module)}" for module in modules]
        last = s.end_lineno or s.lineno
        if {h.name for h in coming} >= {a.name for a in s.names}:
            edits.replace_lines(s.lineno, last, new)
        elif coming:
            _take_out(edits, s, {h.name for h in coming})
            edits.replace_lines(last + 1, last, new)
    return edits.done() if edits.spans else facts.text.text


def _take_out(edits: Edits, s: ast.ImportFrom, names: set[str]) -> None:
    for start, stop in cuts_of(edits.facts.text, s, [a for a in s.names if a.name in names]):
        edits.replace(start, stop, "")


def without(facts: Facts, names: set[str]) -> tuple[str, list[tuple[int, str]]]:
    """The text of a package's file that does not hand these on any more; the lines that did, with the names."""
    edits, gone = Edits(facts), list[tuple[int, str]]()
    for s in facts.tree.body:
        if isinstance(s, ast.ImportFrom) and (own := [a.name for a in s.names if a.name in names]):
            _take_out(edits, s, names)
            gone += [(s.lineno, name) for name in own]
    return edits.done() if edits.spans else facts.text.text, gone


def reads_beside(facts: Facts, names: set[str], handed: set[str]) -> set[str]:
    """Which of these a package's file says anywhere but where it hands on what the script has of it."""
    handing = [a for s in facts.tree.body if isinstance(s, ast.ImportFrom) for a in s.names if not a.asname]
    given = [a.name for a in facts.walk(ast.alias) if a not in handing or a.name not in handed]
    return names & {*given, *(n.id for n in facts.walk(ast.Name)), *(n.attr for n in facts.walk(ast.Attribute))}

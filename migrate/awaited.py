"""Functions of other files that a project calls in its own course alone, outside of a Module's hooks, but
for those of epochs.

Every process comes there, so that what they ask can be answered for all, and what they save can be waited for: the file
may be loaded next.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from .codemods._loaded_again import comes_alike
from .codemods._own_answers import asking_each, by_own_answer
from .facts.classes import Function
from .facts.in_course import of_samples
from .facts.loops import last_part
from .facts.script import Facts, facts_of, of_one_file
from .sources import Imports

if TYPE_CHECKING:
    from .one_file import Migrated

LOADS = "torch.load("
OWN_TIMES = ast.ClassDef | ast.Lambda | ast.ExceptHandler
TOP = ""  # the course of a file itself, which is no function


class Awaited:
    """What every process comes to in the files below the scripts of `done` that are run by several."""

    def __init__(self, done: list[Migrated], imports: Imports) -> None:
        there = [m for m in done if m.result is not None]
        self.texts = {imports.real(m.path): m.result.text for m in there if m.result is not None}
        run = [m.path for m in there if m.report.plan in ("module", "manual", "loop")]
        self.projects = {imports.real(p): imports.project(p) for p in run}
        self.real = imports.real
        self._calls = cache(_together)

    def together(self, path: Path) -> frozenset[str]:
        """The functions that all processes call where they call them; "" for the file itself."""
        real, texts = self.real(path), self._around(path)
        outside, late, _ = self._calls(texts)
        module = real.parent.name if real.stem == "__init__" else real.stem
        return outside - {TOP} if module in late or not texts else outside

    def apart(self, path: Path) -> frozenset[str]:
        """Those that hooks call where not all may come, or as often; not those that give samples."""
        return self._calls(self._around(path))[2]

    def awaited(self, path: Path) -> frozenset[str]:
        """Those of a project that loads what it saved."""
        loads = any(LOADS in text for text in self._around(path))
        return self.together(path) - {TOP} if loads else frozenset()

    def _around(self, path: Path) -> frozenset[str]:
        """The texts of the projects that a file belongs to."""
        of = (project for project in self.projects.values() if self.real(path) in project)
        return frozenset(self.texts[p] for project in of for p in project if p in self.texts)


def _together(texts: frozenset[str]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Functions that are called outside of hooks alone, the modules that are imported below the top of a file, and the
    functions that are called in hooks.
    """
    with of_one_file():
        return _of_files([facts for text in texts if (facts := _facts_of(text)) is not None])


def _facts_of(text: str) -> Facts | None:
    try:
        return facts_of(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # of another Python, and without torch


def _of_files(files: list[Facts]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    of: dict[str, set[str]] = {TOP: set()}  # what each function calls, and a class where it is constructed
    inside, late, hooked = set[str](), set[str](), set[str]()
    for facts in files:
        late.update(_late(facts))
        asking = asking_each(facts)
        for call in facts.walk(ast.Call):
            holder = None if asking and by_own_answer(facts, call, asking) else _holder(facts, call)
            name = _called(facts, call)
            if name is not None:
                (inside if holder is None else of.setdefault(holder, set())).add(name)
                if holder is None and not of_samples(facts, call):
                    hooked.add(name)
    called = inside.union(*of.values())
    for facts in files:
        inside.update(_handed_on(facts, called))
    for found in (inside, hooked):
        queue = list(found)
        while queue:  # a function that a hook calls is of the hook, and so is what that calls
            new = of.get(queue.pop(), set()) - found
            found |= new
            queue += new
    return frozenset({TOP}.union(*of.values()) - inside), frozenset(late), frozenset(hooked)


def _holder(facts: Facts, call: ast.Call) -> str | None:
    """The function that makes a call, or the class whose constructor does; None for what calls at times of its own."""
    if comes_alike(facts, call):
        return TOP
    ups = [up for up in facts.scopes.ancestors(call) if isinstance(up, (OWN_TIMES, Function))]
    match ups:
        case []:
            return TOP
        case [ast.FunctionDef(name="__init__"), ast.ClassDef(name=name)]:
            return name
        case [ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name), *above]:
            return None if any(isinstance(up, OWN_TIMES) for up in above) else name
    return None


def _called(facts: Facts, call: ast.Call) -> str | None:
    made = _made(facts, call.func)
    return next((s.name for s in made if isinstance(s, ast.alias)), last_part(call.func))  # `import f as g` calls f


def _made(facts: Facts, e: ast.expr) -> list[ast.alias | ast.ClassDef | Function]:
    """The imports, functions and classes that a name stands for."""
    home = facts.scopes.scope_of(e).lookup(e.id) if isinstance(e, ast.Name) else None
    made = home.stores.get(e.id, []) if home is not None and isinstance(e, ast.Name) else []
    return [s for s in made if isinstance(s, (ast.alias, ast.ClassDef, Function))]


def _handed_on(facts: Facts, names: set[str]) -> set[str]:
    """Functions of these names that are read without being called there: who calls them does not show."""
    read = (n for n in facts.walk(ast.Name) if isinstance(n.ctx, ast.Load) and not _is_called(facts, n))
    found = {s.name for n in read for s in _made(facts, n)} & names
    for name in names & facts.attributes.keys():
        found |= {name for a in facts.attributes[name] if not _is_called(facts, a) and _made(facts, a.value)}
    return found


def _is_called(facts: Facts, e: ast.expr) -> bool:
    up = facts.scopes.parents.get(e)
    return isinstance(up, ast.Call) and up.func is e


def _late(facts: Facts) -> set[str]:
    """Modules that a function or a class imports, when it comes there."""
    found = set[str]()
    imports: list[ast.Import | ast.ImportFrom] = [*facts.walk(ast.Import), *facts.walk(ast.ImportFrom)]
    for s in imports:
        if any(isinstance(up, (Function, ast.ClassDef)) for up in facts.scopes.ancestors(s)):
            named = [a.name for a in s.names] + ([s.module or ""] if isinstance(s, ast.ImportFrom) else [])
            found |= {name.rpartition(".")[2] for name in named}
    return found

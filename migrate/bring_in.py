"""A training loop of another file comes into the script that calls it, where the lift can read the whole of it.

`from engine import train_one_epoch` is replaced by the function itself and by the imports that it needs. Only what is
the same program afterwards: every name that the function reads means in the script what it meant in its own file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from .codemods.mend_async import mend
from .facts.nodes import is_main_guard, walk
from .facts.script import Facts
from .facts.source import SourceError, read_bytes, read_source
from .given import Stays, device_of, imports_of, starred
from .joined import Brought, Definition, JoinedScript, LocalModule, asked, names_in
from .line_map import line_map
from .packages import by_their_files, handed_on, reads_beside, without
from .sources import Imports

# what finds a definition by a text that holds its name
BY_TEXT = re.compile(
    r"(?<![.\w])(?:[gs]etattr|globals|locals|vars|eval|exec)\(|\b(?:sys\.modules|import_module|patch|__import__|__all__|__dict__)\b"
)


def bring_in(
    path: Path, text: str, imports: Imports, readers: list[Path], beside: Iterable[Path] = ()
) -> Brought | None:
    """The script with the loops that it imports; None where it imports none. Raises Stays where they have to stay.

    `readers`: other files, which may import the same definitions. `beside`: files of other programs, which go on
    finding them where they are. Evaluations that cannot come stay where they are.
    """
    beside = list(beside)
    try:
        return _brought(path, text, imports, readers, beside, _evaluates)
    except Stays as stays:
        try:
            alone = _brought(path, text, imports, readers, beside, lambda d: False)
        except Stays:
            alone = None
        if alone is None:
            raise stays from None
        return alone


def _brought(
    path: Path,
    text: str,
    imports: Imports,
    readers: list[Path],
    beside: list[Path],
    evaluates: Callable[[Definition], bool],
) -> Brought | None:
    """`evaluates`: which definitions come beside those that train."""
    chosen = partial(_chosen, path, imports=imports, evaluates=evaluates)
    try:
        original = facts = Facts(mend(text)[0])
        handed = handed_on(path, facts, imports, _facts)
        if handed:  # of these only what comes is imported otherwise
            every = Facts(by_their_files(facts, handed, (h.name for own in handed.values() for h in own)))
            facts = Facts(by_their_files(facts, handed, {n for m in chosen(every) for n in m.comes}))
        modules = chosen(facts)
        for m in modules:
            m.through = [h for own in handed.values() for h in own if h.module == m.name]
        coming = [m for m in modules if m.comes]
        for m in coming:
            m.stars = starred(m.facts, m.package, lambda name: imports.module(path, tuple(name.split("."))))
        if not any(_trains(m, d) for m in coming for d in m.comes.values()):
            return None
        silent = {m.path for m in coming if all(map(_does_nothing, _run_by(m, imports)))}
        others = [p for p in readers if imports.real(p) != imports.real(path)]
        for m in coming:
            alone = m.path in silent and _alone(path, facts, m, imports, others)
            by_itself = any(_own_names(m, s) & set(m.comes) for s in m.facts.tree.body if _is_for_itself(s))
            for_others = by_itself or any(_read_by(p, path, m, imports) & set(m.comes) for p in beside)
            m.stays = alone and for_others and _comes_whole(m)
            if not m.stays:
                _only_here(path, m, imports, others if alone and not for_others else [*others, *beside])
        coming = [m for m in coming if m.comes]
        stars = starred(facts, [], lambda name: imports.module(path, tuple(name.split("."))))
        brought = JoinedScript(facts, coming, silent, stars).joined()
        return brought if facts is original else _of_packages(brought, coming, facts, original)
    except (SyntaxError, SourceError, OSError, RecursionError):
        return None


def _of_packages(brought: Brought, coming: list[LocalModule], facts: Facts, original: Facts) -> Brought:
    """What came, with the lines of the script itself, and with the packages that do not hand it on any more."""
    back = line_map(facts.text.text, original.text.text)
    came = [h for m in coming if not m.stays for h in m.through if h.name in m.comes]
    packages, told = dict[Path, str](), list[tuple[Path, int, str]]()
    for at in dict.fromkeys(at for h in came for at in h.through):
        text, gone = without(_facts(at), {h.name for h in came if at in h.through})
        if gone:
            packages[at] = text
            told += [(at, line, name) for line, name in gone]
    return replace(
        brought,
        left={**brought.left, **packages},
        names=[(back(line), name, path) for line, name, path in brought.names],
        line=lambda line: back(brought.line(line)),
        packages=tuple(told),
    )


# -- which definitions ----------------------------------------------------------------------------------------------


def _chosen(path: Path, facts: Facts, imports: Imports, evaluates: Callable[[Definition], bool]) -> list[LocalModule]:
    modules = _modules(path, facts, imports)
    _by_star(path, facts, modules, imports)
    _choose(facts, modules, evaluates)
    return modules


def _modules(path: Path, facts: Facts, imports: Imports) -> list[LocalModule]:
    """The local modules that the script's own statements import."""
    found: dict[Path, LocalModule] = {}
    for s in facts.tree.body:
        if isinstance(s, ast.Import):
            asked = [a.name for a in s.names]
        elif isinstance(s, ast.ImportFrom) and s.module and not s.level:
            asked = [s.module, *(f"{s.module}.{a.name}" for a in s.names)]
        else:
            continue
        for name in asked:
            at = imports.module(path, tuple(name.split(".")))
            if at is not None and at not in found and any(w in read_bytes(at) for w in (b"torch", b".backward(")):
                package = name.split(".") if at.name == "__init__.py" else name.split(".")[:-1]
                found[at] = LocalModule(at, name, package, _facts(at))
    return list(found.values())


def _by_star(path: Path, facts: Facts, modules: list[LocalModule], imports: Imports) -> None:
    """What `from engine import *` gives the script of each module's own definitions, where the script reads it."""
    for m in modules:
        m.is_starred = any(_stars(s) and s.module == m.name for s in facts.tree.body if isinstance(s, ast.ImportFrom))
    if not any(m.is_starred for m in modules):
        return
    try:
        stars = starred(facts, [], lambda name: imports.module(path, tuple(name.split("."))))
    except Stays:
        return  # told where it matters
    scopes = facts.scopes
    free = {n.id for n in facts.walk(ast.Name) if n.id in stars and scopes.of_name[n].lookup(n.id) is None}
    for m in modules:
        m.by_star = {name for name in m.own if name in free and stars[name] == f"from {m.name} import {name}"}


def _choose(facts: Facts, modules: list[LocalModule], evaluates: Callable[[Definition], bool]) -> None:
    """What the script reads and trains, or evaluates beside it; and what that reads of such, in its own file."""
    for m in modules:
        wanted = asked(facts, m)
        leads = {name for name, d in m.own.items() if _trains(m, d) or evaluates(d)}
        while more := {n for n, d in m.own.items() if n not in leads and _reads(d) & leads}:
            leads |= more
        reached = wanted & leads
        while more := {n for r in reached for n in _reads(m.own[r]) & leads} - reached:
            reached |= more
        m.comes = {name: d for name, d in m.own.items() if name in reached}


def _reads(d: Definition) -> set[str]:
    return {n.id for n in walk(d, ast.Name) if isinstance(n.ctx, ast.Load)}


def _trains(m: LocalModule, d: Definition) -> bool:
    return any(isinstance(c.func, ast.Attribute) and c.func.attr == "backward" for c in walk(d, ast.Call)) and not any(
        m.facts.names.resolve(b) == "torch.autograd.Function" for b in getattr(d, "bases", ())
    )


def _evaluates(d: Definition) -> bool:
    """A function that puts a model into evaluation mode and goes over something."""
    nodes = list(walk(d)) if isinstance(d, ast.FunctionDef) else []
    modes = any(isinstance(n, ast.Attribute) and n.attr == "eval" for n in nodes)
    return modes and any(isinstance(n, ast.For) for n in nodes)


def _only_here(script: Path, m: LocalModule, imports: Imports, readers: Iterable[Path]) -> None:
    """An evaluation that another file reads stays; raise for a loop that one reads: it is to be found where it was."""
    rest = [
        s for s in m.facts.tree.body if not (any(s is d for d in m.comes.values()) or (m.stays and _is_for_itself(s)))
    ]
    read = set().union(*(_own_names(m, s) for s in rest), *(_read_by(p, script, m, imports) for p in readers))
    if any(_trains(m, d) for name, d in m.comes.items() if name in read):
        raise Stays(f"another part of the project reads what trains in {m.path.name}")
    m.comes = {name: d for name, d in m.comes.items() if name not in read}


def _read_by(reader: Path, script: Path, m: LocalModule, imports: Imports) -> set[str]:
    """What another file may read of a module."""
    packages = {imports.real(at) for h in m.through for at in h.through}
    itself = imports.real(reader) == imports.real(m.path)
    asked = imports.direct(reader, script) | imports.around(reader)
    if itself or not asked & {imports.real(m.path), *packages}:
        return set()
    facts = _facts(reader)
    if imports.real(reader) in packages:
        handed = {h.name for h in m.through if imports.real(reader) in map(imports.real, h.through)}
        return reads_beside(facts, set(m.comes), handed)
    if any(_stars(s) for s in facts.tree.body):
        return set(m.comes)
    return names_in(facts.tree, texts=BY_TEXT.search(facts.text.text) is not None)


def _own_names(m: LocalModule, s: ast.stmt) -> set[str]:
    """What a statement may read of its own file: the `train` of `model.train()` is another thing's."""
    return names_in(s, attributes=False, texts=BY_TEXT.search(m.facts.text.text) is not None)


def _alone(script: Path, facts: Facts, m: LocalModule, imports: Imports, others: list[Path]) -> bool:
    """Whether the script, without what comes, has no more to do with the module: that may be left as it is."""
    given = {(s.module, a.name) for s in facts.walk(ast.ImportFrom) for a in s.names}
    full = [a.name for s in facts.walk(ast.Import) for a in s.names]
    full += [f"{module}.{name}" for module, name in given if module != m.name or name not in m.comes]
    kept = (s for s in m.facts.tree.body if not (any(s is d for d in m.comes.values()) or _is_for_itself(s)))
    rest = {n for s in kept for n in _own_names(m, s)}
    if rest & set(m.comes) or any(f"{name}.".startswith(f"{m.name}.") for name in full):
        return False
    return not any(imports.real(m.path) in imports.direct(p, script) for p in others)


def _comes_whole(m: LocalModule) -> bool:
    """Whether what comes can bring all that it reads of its file, so that the script imports no more of that."""
    reached = set(m.comes)
    while more := {n for r in reached for n in _reads(m.own[r]) & m.own.keys()} - reached:
        reached |= more
    read = {n for r in reached for n in _reads(m.own[r])} - m.own.keys()
    binds, imported = m.facts.scopes.module.binds, partial(imports_of, m.facts, package=m.package)
    if any(binds(n) and not imported(n) and device_of(m.facts, n) is None for n in read):
        return False
    m.comes = {name: d for name, d in m.own.items() if name in reached}
    return True


def _facts(path: Path) -> Facts:
    return Facts(mend(read_source(path).text)[0])


def _is_for_itself(s: ast.stmt) -> bool:
    """`if __name__ == "__main__":`, of a module that can be started too: nothing of it runs where it is imported."""
    return isinstance(s, ast.If) and not s.orelse and is_main_guard(s.test)


def _stars(s: ast.AST) -> bool:
    return any(n.name == "*" for n in walk(s, ast.alias))


def _run_by(m: LocalModule, imports: Imports) -> list[Path]:
    """The files that run where a module is imported."""
    packages = [at for h in m.through for at in h.through]
    return list(dict.fromkeys(p for at in (m.path, *packages) for p in (at, *imports.followed(at))))


def _does_nothing(path: Path) -> bool:
    """Whether importing a file only defines things, as far as its own statements tell."""
    quiet = ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
    for s in _facts(path).tree.body:
        text = isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)
        plain = isinstance(s, (ast.Assign, ast.AnnAssign)) and not walk(s, ast.Call)
        if not (isinstance(s, quiet) or text or plain or _is_for_itself(s)):
            return False
    return True

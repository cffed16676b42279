"""What the other files of a project say of processes: a script's helper may ask for ranks in a file of its own."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from pathlib import Path

from .codemods.inline_movers import movers_of
from .codemods.remove_samplers import RemoveSamplers
from .facts.alone import askers_of, asks_for_rank_zero
from .facts.distribution import distribution_of, mentions_processes
from .facts.environment import ASKS, NAMES, handed_on
from .facts.kept_copies import kept_copies
from .facts.loaded_states import loads
from .facts.other_files import OtherFile
from .facts.script import Facts, Taken
from .facts.source import SourceError, mentions_torch, read_source
from .facts.world import PEERS, PLAIN, World
from .given_elsewhere import MOVER, given_made
from .sources import Imports


@dataclass(frozen=True)
class Elsewhere:
    by_hand: bool = False  # some file starts or connects processes by hand
    wrapped: frozenset[str] = frozenset()  # names of models that are wrapped
    given_wrapped: frozenset[tuple[str, int]] = frozenset()  # (function, place of the argument) that get one
    guarded: frozenset[str] = frozenset()  # functions that are called on rank 0 alone
    called: frozenset[str] = frozenset()  # functions that are called on every rank
    askers: frozenset[str] = frozenset()  # functions and properties that ask for rank 0
    reads: frozenset[str] = frozenset()  # options that are read where a plain script comes, and names that it imports
    defines: frozenset[str] = frozenset()  # functions whose reads of options are known
    handed: frozenset[str] = frozenset()  # functions that are given a launcher's names
    imported: bool = False  # another file imports this one
    taken: Taken | None = None  # and whether it takes a name of it
    trains: bool = False  # the file trains what others of torch hand it, and says nothing of torch itself
    samplers: bool = False  # a DistributedSampler is made, and goes
    samplers_kept: bool = False  # one stays
    values: dict[str, dict[World, object]] = field(default_factory=dict)  # options and functions that tell of processes
    movers: dict[str, str] = field(default_factory=dict)  # functions that only move what they get, and where to
    given_made: frozenset[tuple[str, int]] = frozenset()  # functions of others that are given what they have to move
    copies: dict[str, list[str]] = field(
        default_factory=dict
    )  # classes whose objects keep copies of networks, and where
    others: tuple[OtherFile, ...] = ()  # the other files themselves, for what a step calls there
    awaited: frozenset[str] = frozenset()  # functions that the migrated scripts call where all processes may wait
    together: frozenset[str] = frozenset()  # functions that all processes call where they call them
    apart: frozenset[str] = frozenset()  # functions that hooks call where not all may come
    untrained: bool = False  # the file is one of several, whose scripts train nothing
    states_read: bool = False  # a file of its projects loads states of modules, or goes through them
    beside: Taken | None = None  # whether a file that lies beside this one takes a name of it, and stays as it is

    def __or__(self, other: Elsewhere) -> Elsewhere:
        return Elsewhere(
            self.by_hand or other.by_hand,
            self.wrapped | other.wrapped,
            self.given_wrapped | other.given_wrapped,
            self.guarded | other.guarded,
            self.called | other.called,
            self.askers | other.askers,
            self.reads | other.reads,
            self.defines | other.defines,
            self.handed | other.handed,
            self.imported or other.imported,
            self.taken or other.taken,
            self.trains or other.trains,
            self.samplers or other.samplers,
            self.samplers_kept or other.samplers_kept,
            {**self.values, **other.values},
            {**self.movers, **other.movers},
            self.given_made | other.given_made,
            {**self.copies, **other.copies},
            self.others or other.others,
            self.awaited | other.awaited,
            self.together | other.together,
            self.apart | other.apart,
            self.untrained or other.untrained,
            self.states_read or other.states_read,
            self.beside or other.beside,
        )


def of_projects(paths: list[Path], imports: Imports) -> dict[Path, Elsewhere]:
    """For each file, what the files that it imports, or that import it, say."""
    texts = {imports.real(p): _text(p) for p in paths}
    files = {imports.real(p): OtherFile(p.stem, texts[imports.real(p)], p.absolute().parent.name) for p in paths}
    spoken = {p: said for p in paths if (said := _said(p, tuple(files.values()))) is not None}
    movers = {name: said for own in spoken.values() for name, said in own.movers.items()}
    for path, given in given_made(paths, movers).items() if len(paths) > 1 else ():
        spoken[path] = replace(spoken.get(path, Elsewhere()), given_made=given)
    if len(paths) < 2:
        return {}
    led_to: dict[Path, set[Path]] = {}
    for path in paths:
        for real, leads in imports.led_to(path).items():
            led_to.setdefault(real, set()).update(leads)
    told: dict[Path, dict[Path, None]] = {}  # for each file, the others of its projects that say something
    found: dict[Path, Elsewhere] = {}
    trained = [p for p in paths if trains_by_others(texts[imports.real(p)])]
    loading = {real for real, text in texts.items() if loads(text)}
    for path in paths:
        reach = imports.project(path)
        project = [p for p in paths if imports.real(p) in reach]
        for p in trained:
            if imports.real(p) in reach and any("torch" in texts[imports.real(q)] for q in project):
                found[p] = replace(found.get(p, Elsewhere()), trains=True)
        for p in project if loading.intersection(reach) else ():
            found[p] = replace(found.get(p, Elsewhere()), states_read=True)
        speaking = dict.fromkeys(p for p in project if p in spoken)
        for p in project if speaking else ():
            told.setdefault(p, {}).update(speaking)
        reach |= led_to.get(imports.real(path), frozenset())
        others = tuple(files[r] for p in paths if p is not path and (r := imports.real(p)) in reach and r in files)
        if others:
            found[path] = replace(found.get(path, Elsewhere()), others=others)
    for path, speakers in told.items():
        for other in speakers:
            if other is not path:
                found[path] = found.get(path, Elsewhere()) | spoken[other]
    return found


def trains_by_others(text: str) -> bool:
    """Whether a file trains what it is handed, and does not say of which framework that is."""
    return "torch" not in text and ".backward(" in text


def _text(path: Path) -> str:
    try:
        return read_source(path).text
    except SourceError:
        return ""


def _said(path: Path, others: tuple[OtherFile, ...]) -> Elsewhere | None:
    try:
        source = read_source(path)
        asks = ASKS.search(source.text) is not None and NAMES.search(source.text) is not None
        if not (asks or mentions_torch(source.raw)):
            return None
        speaks = asks or mentions_processes(source.text) or "DistributedSampler" in source.text
        moves = MOVER.search(source.text)
        if not (speaks or moves or "deepcopy" in source.text):
            return None
        facts = Facts(source.text)
        facts.others = others
    except (SourceError, SyntaxError, RecursionError):
        return None
    movers = movers_of(facts) if moves else {}
    copies = {c.name: list(kept) for c in facts.walk(ast.ClassDef) if (kept := kept_copies(facts, c))}
    if not speaks:
        return Elsewhere(movers=movers, copies=copies) if movers or copies else None
    found = distribution_of(facts)
    guarded: set[str] = set()
    called: set[str] = set()
    given: set[tuple[str, int]] = set()
    for call in facts.walk(ast.Call):
        name = _last(call.func)
        (guarded if asks_for_rank_zero(facts, call) else called).add(name)
        for i, a in enumerate(call.args):
            last = a.attr if isinstance(a, ast.Attribute) else getattr(a, "id", None)
            if last in found.wrapped_names:
                given.add((name, i))
    samplers = _samplers(facts) if "DistributedSampler" in source.text else (False, False)
    return Elsewhere(
        found.by_hand,
        frozenset(found.wrapped_names),
        frozenset(given),
        frozenset(guarded),
        frozenset(called),
        askers_of(facts),
        _reads(facts),
        frozenset(f.name for f in facts.walk(ast.FunctionDef)),
        frozenset(_last(c.func) for c in handed_on(facts)),
        False,
        None,
        False,
        *samplers,
        _values(facts) | _constants(facts, path.parent.name if path.stem == "__init__" else path.stem),
        movers,
        frozenset(),
        copies,
    )


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _samplers(facts: Facts) -> tuple[bool, bool]:
    """Whether a DistributedSampler goes, and whether one stays."""
    codemod = RemoveSamplers()
    for _ in codemod.plan(facts):
        pass
    return codemod.any_gone, codemod.any_kept


def _reads(facts: Facts) -> frozenset[str]:
    read = (
        a.attr
        for a in facts.walk(ast.Attribute)
        if isinstance(a.ctx, ast.Load) and isinstance(a.value, ast.Name) and facts.worlds.reached.live(a, PLAIN)
    )
    return frozenset(read) | {a.name for s in facts.walk(ast.ImportFrom) for a in s.names}


def _values(facts: Facts) -> dict[str, dict[World, object]]:
    """Attributes of options that this file sets, and functions without parameters, where each world has one value."""
    worlds = (PLAIN, *PEERS)
    values: dict[str, dict[World, object]] = {}
    nodes = [a for a in facts.walk(ast.Attribute) if not isinstance(a.ctx, ast.Load)]
    for a in nodes:
        known = [facts.worlds.value(a, w) for w in worlds]
        if all(k is not None and k.asked for k in known):
            values[a.attr] = {w: k.value for w, k in zip(worlds, known, strict=True) if k is not None}
    for f in facts.tree.body:
        if isinstance(f, ast.FunctionDef) and not f.args.args:
            known = [facts.worlds.returned(f, w) for w in worlds]
            if all(k is not None and k.asked for k in known):
                values[f"{f.name}()"] = {w: k.value for w, k in zip(worlds, known, strict=True) if k is not None}
    return values


def _constants(facts: Facts, module: str) -> dict[str, dict[World, object]]:
    """`settings.WORLD_SIZE`: names at the top of a file, where each world has one value."""
    values: dict[str, dict[World, object]] = {}
    once = {name for name, stores in facts.scopes.module.stores.items() if len(stores) == 1}
    for s in facts.tree.body:
        target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
        if isinstance(s, ast.Assign) and isinstance(target, ast.Name) and target.id in once:
            known = {w: facts.worlds.value(s.value, w) for w in (PLAIN, *PEERS)}
            if all(k is not None and k.asked for k in known.values()):
                values[f"{module}.{target.id}"] = {w: k.value for w, k in known.items() if k is not None}
    return values

"""Batches that a loop cuts by hand, from an index, as something that it goes over.

    for i in range(0, len(X), size):              for x, y in Batches(X, Y, at=range(0, len(X), size), size=size,
        rows = order[i:i + size]                                      order=order):
        x, y = X[rows], Y[rows]                       loss = F.mse_loss(net(x), y)
        loss = F.mse_loss(net(x), y)

Only where all that its number leads to is cut in one way: steps in time (`text[i:i + n]`, `text[i + 1:i + n + 1]`) are
cut in two.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from ...facts.nodes import walk
from ...facts.runtime_names import imported_as
from ...facts.script import Facts
from ...facts.spelled import spelled
from ..loaders import BATCHES
from ..nodes import is_call_of
from ..reads import stored
from .edits import Edits
from .free import free_at
from .loops import nearest_loop
from .places import Place, Places

# what is cut by a size of such a name are samples, where nothing else says so
OF_BATCHES = re.compile(r"batch|(?:\b|_)(?:bs|bsz|mb)(?:\b|_)", re.IGNORECASE)
ALONE = ("unsqueeze", "view", "reshape", "expand_dims")  # with a first dimension of one, what is cut is one sample


@dataclass
class _Cut:
    """A loop over `counted`, a range(), that takes the same place of each of `data`."""

    loop: ast.For
    counted: ast.Call
    number: ast.Name
    places: Places
    place: Place
    parts: list[ast.Subscript] = field(default_factory=list)

    @property
    def data(self) -> list[str]:
        return list(dict.fromkeys(part.value.id for part in self.parts))  # type: ignore[attr-defined]


def cut_by_the_loop(facts: Facts) -> str | None:
    """The text with one such loop over its batches; None where there is none."""
    if not facts.ours or imported_as(facts, BATCHES) != BATCHES:
        return None
    if "range(" not in facts.text.text or ".backward(" not in facts.text.text:
        return None
    for call in facts.walk(ast.Call):
        loop = nearest_loop(facts, call) if is_call_of(call, "backward") else None
        cut = _cut(facts, loop) if isinstance(loop, ast.For) and not loop.orelse else None
        if cut is not None and (text := _written(facts, cut)) is not None:
            return text
    return None


def _cut(facts: Facts, loop: ast.For) -> _Cut | None:
    found = _counted(loop)
    if found is None or any(facts.devices.moved(call) is not None for call in walk(loop, ast.Call)):
        return None  # what the script moves itself is its own as long as the script cuts it
    counted, number = found
    places = Places(facts, loop, number.id)
    cut: _Cut | None = None
    for part in walk(loop, ast.Subscript):
        place = places.of(part)
        if place is None or places.is_step(part):
            continue
        if not isinstance(part.value, ast.Name) or not isinstance(part.ctx, ast.Load):
            return None
        if facts.scopes.scope_of(part) is not facts.scopes.scope_of(loop):
            return None
        cut = cut or _Cut(loop, counted, number, places, place)
        if place != cut.place:
            return None
        cut.parts.append(part)
    if cut is not None:
        cut.parts.sort(key=lambda part: (part.lineno, part.col_offset))
    return cut if cut is not None and _fits(cut) and _is_steady(facts, cut) and _gives_samples(cut) else None


def _counted(loop: ast.For) -> tuple[ast.Call, ast.Name] | None:
    """range(...) and the name that gets its numbers; a bar or enumerate() may be around it."""
    source, target = loop.iter, loop.target
    while isinstance(source, ast.Call) and source.args and spelled(source.func) != "range":
        if spelled(source.func) == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            target = target.elts[1]
        elif spelled(source.func) not in ("tqdm", "tqdm.tqdm"):
            return None
        source = source.args[0]
    if not isinstance(source, ast.Call) or source.keywords or not isinstance(target, ast.Name):
        return None
    return (source, target) if not any(isinstance(a, ast.Starred) for a in source.args) else None


def _fits(cut: _Cut) -> bool:
    """Whether what it counts are places, or batches from the first; a place that ends early ends with the data."""
    args = cut.counted.args
    if cut.place.by_number:
        return len(args) == 1
    lengths = {form for name in (*cut.data, cut.place.order) for form in _lengths(name)}
    ends = cut.place.ends
    return len(args) == 3 and (ends is None or ends in lengths or cut.places.value_of(ends) in lengths)


def _lengths(name: str | None) -> tuple[str, ...]:
    return (f"len({name})", f"{name}.shape[0]", f"{name}.size(0)", f"{name}.size()[0]")


def _is_steady(facts: Facts, cut: _Cut) -> bool:
    """Whether the data is not changed in the loop, nor given to what may change it."""
    held = {*cut.data, cut.place.order} - {None}
    kept = held | {n.id for n in walk(ast.parse(cut.place.size, mode="eval"), ast.Name)}
    if stored(cut.loop.body) & kept:
        return False
    parts = {id(part.value) for part in cut.parts} | cut.places.read
    for n in walk(cut.loop, ast.Name):
        if n.id in held and id(n) not in parts and n not in walk(cut.counted) and not _is_measured(facts, n):
            return False
    return True


def _is_measured(facts: Facts, n: ast.Name) -> bool:
    """`len(X)`, `X.shape`, `X.size(0)`"""
    up = facts.scopes.parents.get(n)
    if isinstance(up, ast.Attribute):
        return up.attr in ("shape", "size", "ndim", "dtype", "device")
    return isinstance(up, ast.Call) and spelled(up.func) == "len"


def _gives_samples(cut: _Cut) -> bool:
    """Whether a batch is of samples, and no sequence: of several things, out of order, or by the name of its size."""
    if len(cut.data) == 1 and cut.place.order is None and not OF_BATCHES.search(cut.place.size):
        return False
    for n in walk(cut.loop):
        if isinstance(n, ast.Call) and spelled(n.func).split(".")[-1] in ALONE and n.args:
            function = spelled(n.func).split(".")[0] in ("torch", "np", "numpy")
            first = n.args[1 if function and len(n.args) > 1 else 0]
            alone = 1 if spelled(n.func).endswith(("view", "reshape")) else 0
            if isinstance(first, ast.Constant) and first.value == alone:
                return False
        elif isinstance(n, ast.Subscript):
            first = n.slice.elts[0] if isinstance(n.slice, ast.Tuple) and n.slice.elts else n.slice
            if (isinstance(first, ast.Constant) and first.value is None) or spelled(first).endswith("newaxis"):
                return False
    return True


def _written(facts: Facts, cut: _Cut) -> str | None:
    edits, places = Edits(facts), cut.places
    named, gone = _named(facts, cut)
    gone += places.steps
    if not places.go(gone) or not places.ends_here():
        return None
    head = ", ".join(named.values())
    loop, place = cut.loop, cut.place
    counted = facts.text.get(cut.counted)
    if place.by_number:
        n = facts.text.get(cut.counted.args[0])
        plain = isinstance(cut.counted.args[0], (ast.Name, ast.Attribute, ast.Constant, ast.Call))
        counted = f"range(0, {n if plain else f'({n})'} * {place.size}, {place.size})"
    order = f", order={place.order}" if place.order else ""
    batches = f"{BATCHES}({', '.join(cut.data)}, at={counted}, size={place.size}{order})"
    edits.replace_node(cut.counted, batches)
    if places.number_read(gone):
        # elsewhere `i` is read as the number of a sample, which an enumerated batch has no more
        if not place.by_number or cut.number is not loop.target or not places.may_count(gone):
            return None
        edits.replace_node(loop.target, f"{cut.number.id}, ({head})" if len(named) > 1 else f"{cut.number.id}, {head}")
        a, b = facts.text.span(loop.iter)
        edits.replace(a, a, "enumerate(")
        edits.replace(b, b, ")")
    else:
        edits.replace_node(cut.number, head if cut.number is loop.target or len(named) == 1 else f"({head})")
    for part in cut.parts:
        if facts.scopes.statement_of(part) not in gone:
            edits.replace_node(part, named[part.value.id])  # type: ignore[attr-defined]
    for s in gone:
        edits.replace_lines(s.lineno, s.end_lineno or s.lineno, [])
    return edits.done()


def _named(facts: Facts, cut: _Cut) -> tuple[dict[str, str], list[ast.stmt]]:
    """What the loop calls the part of each of the data, and the statements that named them so, which go."""
    names, gone = dict[str, str](), list[ast.stmt]()
    for s in cut.loop.body:
        if not isinstance(s, ast.Assign) or len(s.targets) != 1:
            continue
        pairs = list(_pairs(s.targets[0], s.value))
        cuts = {v.value.id: t.id for t, v in pairs if v in cut.parts and isinstance(t, ast.Name)}  # type: ignore
        above = cut.loop.body[: cut.loop.body.index(s)]
        early = {n.id for a in above for n in walk(a, ast.Name)} & {*cuts.values()}
        once = all(sum(part.value.id == d for part in cut.parts) == 1 for d in cuts)  # type: ignore[attr-defined]
        if len(cuts) == len(pairs) and once and not early and not {*cuts.values()} & {*names.values()}:
            names.update(cuts)
            gone.append(s)
    for d in cut.data:
        if d not in names:
            names[d] = free_at(facts, cut.loop, f"{d}_batch")
    return {d: names[d] for d in cut.data}, gone


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]

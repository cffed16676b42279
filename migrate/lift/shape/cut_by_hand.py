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
from functools import partial

from ...facts.nodes import walk
from ...facts.runtime_names import imported_as
from ...facts.script import Facts
from ...facts.spelled import spelled
from ..loaders import BATCHES, is_progress, iterates_loader
from ..nodes import pairs
from .edits import Edits
from .free import free_at
from .loops import nearest_loop
from .places import Place, Places, first_of

# what is cut by a size of such a name are samples, where nothing else says so
OF_BATCHES = re.compile(r"batch|(?:\b|_)(?:bs|bsz|mb)(?:\b|_)", re.IGNORECASE)
# what leaves each sample what it is
SAME_SAMPLES = {"to", "cuda", "float", "double", "half", "long", "int", "type", "contiguous", "requires_grad_"}
# with which argument they make one sample of what is cut: a first dimension of one
ALONE = {"unsqueeze": 0, "expand_dims": 0, "view": 1, "reshape": 1}


@dataclass
class _Cut:
    """A loop over `counted`, a range(), that takes the same place of each of `data`."""

    loop: ast.For
    counted: ast.Call
    number: ast.Name
    places: Places
    place: Place
    parts: dict[ast.Subscript, str] = field(default_factory=dict)  # each with the name of what it cuts

    @property
    def data(self) -> list[str]:
        return list(dict.fromkeys(self.parts.values()))


def cut_by_the_loop(facts: Facts) -> str | None:
    """The text with one such loop over its batches; None where there is none, or the script moves some of it itself."""
    return _by_the_loop(facts, moved=False)


def cut_and_moved(facts: Facts) -> str | None:
    """The text with one such loop over batches that the script moves itself, and all of them: so a Trainer does."""
    return _by_the_loop(facts, moved=True)


def _by_the_loop(facts: Facts, moved: bool) -> str | None:
    if not facts.ours or imported_as(facts, BATCHES) != BATCHES:
        return None
    if "range(" not in facts.text.text or ".backward(" not in facts.text.text:
        return None
    for call in facts.calls_of("backward"):
        loop = nearest_loop(facts, call)
        cut = _cut(facts, loop) if isinstance(loop, ast.For) and not loop.orelse and _steps(facts, loop) else None
        if cut is not None and _is_moved(facts, cut) is moved and (text := _written(facts, cut)) is not None:
            return text
    return None


def _steps(facts: Facts, loop: ast.For) -> bool:
    """Whether it is a loop over batches: those that only add up gradients, and that cut a loader's batch, are none."""
    around = (up for up in facts.scopes.ancestors(loop) if isinstance(up, ast.For))
    steps = any(loop in facts.scopes.ancestors(c) for c in facts.calls_of("step"))
    return steps and not any(iterates_loader(facts, up) for up in around)


def _cut(facts: Facts, loop: ast.For) -> _Cut | None:
    found = _counted(facts, loop)
    if found is None:
        return None
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
        cut.parts[part] = part.value.id
    if cut is not None:
        cut.parts = dict(sorted(cut.parts.items(), key=lambda item: (item[0].lineno, item[0].col_offset)))
    return cut if cut is not None and _fits(cut) and _is_steady(facts, cut) and _gives_samples(facts, cut) else None


def _is_moved(facts: Facts, cut: _Cut) -> bool | None:
    """Whether the script moves every part of a batch, and nothing else in the loop; None where it does some of that."""
    moved = [m for call in walk(cut.loop, ast.Call) if (m := facts.devices.moved(call)) is not None]
    named = _given(cut)
    data: set[str | None] = set()
    for m in map(partial(_same_samples, facts), moved):
        values = [v for name, v in named if name == m.id] if isinstance(m, ast.Name) else [m]
        parts = [part for v in values if (part := _part_of(facts, cut, v)) is not None]
        data |= {cut.parts[part] for part in parts} or {None}
    return bool(moved) if not moved or data == {*cut.parts.values()} else None


def _given(cut: _Cut) -> list[tuple[str, ast.expr]]:
    """What the statements of the loop give each name."""
    return [(t.id, v) for s in walk(cut.loop, ast.Assign) for t, v in pairs(s) if isinstance(t, ast.Name)]


def _part_of(facts: Facts, cut: _Cut, e: ast.expr) -> ast.Subscript | None:
    """The part that `X[rows]`, `Variable(X[rows])` or `X[rows].float().to(device)` is."""
    e = _same_samples(facts, e)
    return e if isinstance(e, ast.Subscript) and e in cut.parts else None


def _same_samples(facts: Facts, e: ast.expr) -> ast.expr:
    """What an expression has the samples of, as they are there."""
    while isinstance(e, ast.Call):
        if isinstance(e.func, ast.Attribute) and e.func.attr in SAME_SAMPLES:
            e = e.func.value
        elif len(e.args) == 1 and facts.names.resolve(e.func) == "torch.autograd.Variable":
            e = e.args[0]
        else:
            break
    return e


def _counted(facts: Facts, loop: ast.For) -> tuple[ast.Call, ast.Name] | None:
    """range(...) and the name that gets its numbers; a bar or enumerate() may be around it."""
    source, target = loop.iter, loop.target
    while isinstance(source, ast.Call) and source.args and spelled(source.func) != "range":
        if spelled(source.func) == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            target = target.elts[1]
        elif not is_progress(facts, source):
            return None
        source = source.args[0]
    if not isinstance(source, ast.Call) or source.keywords or not isinstance(target, ast.Name):
        return None
    return (source, target) if not any(isinstance(a, ast.Starred) for a in source.args) else None


def _fits(cut: _Cut) -> bool:
    """Whether what it counts are places, or batches from the first; a place that ends early ends with the data."""
    args = cut.counted.args
    lengths = {form for name in (*cut.data, cut.place.order) for form in _lengths(name)}
    ends = cut.place.ends
    with_the_data = ends is None or ends in lengths or cut.places.value_of(ends) in lengths
    return with_the_data and len(args) == (1 if cut.place.by_number else 3)


def _lengths(name: str | None) -> tuple[str, ...]:
    return (f"len({name})", f"{name}.shape[0]", f"{name}.size(0)", f"{name}.size()[0]")


def _is_steady(facts: Facts, cut: _Cut) -> bool:
    """Whether the data is not changed in the loop, nor given to what may change it."""
    if any(_changes(facts, cut, n) for n in walk(cut.loop)):
        return False
    held = {*cut.data, cut.place.order} - {None}
    known = {id(part.value) for part in cut.parts} | cut.places.read
    others = (n for n in walk(cut.loop, ast.Name) if n.id in held and id(n) not in known)
    return all(_is_measured(facts, n) for n in others)


def _changes(facts: Facts, cut: _Cut, n: ast.AST) -> bool:
    """`x += 0.1`, `x[0] = 1`, `x.add_(1)` of `x = X[i:i + size]`, which is a view: X changes, too."""
    if cut.place.order is not None:
        return False  # what is picked by an index is a copy
    if isinstance(n, ast.AugAssign):
        of: ast.expr | None = n.target
    elif isinstance(n, ast.Subscript):
        of = n.value if isinstance(n.ctx, ast.Store) else None
    else:
        method = n.func if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) else None
        changes = method is not None and method.attr.endswith("_") and method.attr not in SAME_SAMPLES
        of = method.value if changes and method is not None else None
    while isinstance(of, (ast.Subscript, ast.Attribute)):  # x.data += 0.1, x[0].add_(1)
        of = of.value
    if not isinstance(of, ast.Name):
        return False
    return any(name == of.id and _part_of(facts, cut, v) is not None for name, v in _given(cut))


def _is_measured(facts: Facts, n: ast.Name) -> bool:
    """`len(X)`, `X.shape`, `X.size(0)`"""
    up = facts.scopes.parents.get(n)
    if isinstance(up, ast.Attribute):
        return up.attr in ("shape", "size", "ndim", "dtype", "device")
    return isinstance(up, ast.Call) and spelled(up.func) == "len"


def _gives_samples(facts: Facts, cut: _Cut) -> bool:
    """Whether a batch is of samples, and no sequence: of several things, out of order, or by the name of its size."""
    if len(cut.data) == 1 and cut.place.order is None and not OF_BATCHES.search(cut.place.size):
        return False
    return not any(_makes_one(facts, n) for n in walk(cut.loop))


def _makes_one(facts: Facts, n: ast.AST) -> bool:
    """`x.unsqueeze(0)`, `torch.unsqueeze(x, dim=0)`, `x.view(1, -1)`, `x.reshape((1, -1))`, `x[None]`"""
    if isinstance(n, ast.Subscript):
        first = first_of(n)
        return (isinstance(first, ast.Constant) and first.value is None) or spelled(first).endswith("newaxis")
    method = n.func.attr if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) else ""
    if not isinstance(n, ast.Call) or method not in ALONE:
        return False
    of_module = facts.names.resolve(n.func) is not None  # torch.unsqueeze(x, 0): the tensor comes first
    given = [*n.args[of_module : of_module + 1], *(k.value for k in n.keywords)]
    firsts = (a.elts[0] if isinstance(a, ast.Tuple) and a.elts else a for a in given)
    return any(isinstance(a, ast.Constant) and a.value == ALONE[method] for a in firsts)


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
    for part, data in cut.parts.items():
        if facts.scopes.statement_of(part) not in gone:
            edits.replace_node(part, named[data])
    for s in gone:
        edits.replace_lines(s.lineno, s.end_lineno or s.lineno, _remark(facts, s))
    return edits.done()


def _remark(facts: Facts, s: ast.stmt) -> list[str]:
    """The comment behind a statement, on a line of its own."""
    _, stop = facts.text.span(s)
    _, end = facts.text.line_span(s.end_lineno or s.lineno, s.end_lineno or s.lineno)
    behind = facts.text.text[stop:end].strip()
    return [f"{facts.text.margin(s)}{behind}"] if behind.startswith("#") else []


def _named(facts: Facts, cut: _Cut) -> tuple[dict[str, str], list[ast.stmt]]:
    """What the loop calls the part of each of the data, and the statements that named them so, which go: but for
    those that move it, too.
    """
    names, gone = dict[str, str](), list[ast.stmt]()
    for s in cut.loop.body:
        if not isinstance(s, ast.Assign) or len(s.targets) != 1:
            continue
        every = [
            (t, part) for t, v in pairs(s) if isinstance(t, ast.Name) and (part := _part_of(facts, cut, v)) is not None
        ]
        cuts = {cut.parts[part]: t.id for t, part in every}
        above = cut.loop.body[: cut.loop.body.index(s)]
        early = {n.id for a in above for n in walk(a, ast.Name)} & {*cuts.values()}
        once = all([*cut.parts.values()].count(d) == 1 for d in cuts)
        if len(cuts) == len(pairs(s)) and once and not early:
            names.update(cuts)
            gone += [s] if all(v in cut.parts for _, v in pairs(s)) else []
    for d in cut.data:
        if d not in names:
            names[d] = free_at(facts, cut.loop, f"{d}_batch")
    return {d: names[d] for d in cut.data}, gone

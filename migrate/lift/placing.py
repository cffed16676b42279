"""Loops over batches that stay in the script: the Trainer placed the model, so their batches go to its device too."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ..codemods.base import Change
from ..facts.arguments import argument, given_to
from ..facts.back_from_cpu import itself
from ..facts.drawn import draw_of, drawn_by, gives_batches, makers
from ..facts.loops import EVALUATES
from ..facts.nodes import COMPREHENSIONS, Comprehension, walk
from ..facts.placed_loops import in_step
from ..facts.runtime_names import imported_as
from ..facts.script import Facts
from ..facts.spelled import spelled
from ..facts.uses import uses
from ..report import Edit
from .called_networks import works_with_network
from .loaders import is_loader, looped_over
from .other_networks import network_of, network_on_cpu
from .shape.edits import Edits

CODE, MOVES = "PTM700", "PTM101"
NAME = "on_device"
Loop = ast.For | ast.comprehension
Sets = ast.Assign | ast.NamedExpr
SETS = (ast.Assign, ast.NamedExpr)
OF_NETWORKS = {"eval", "train", "parameters", "zero_grad", "state_dict", "load_state_dict", "modules", "children",
               "named_parameters", "named_modules", "named_children", "buffers", "named_buffers"}  # fmt: skip
# methods of texts that tensors do not have
OF_TEXTS = {"strip", "rstrip", "lstrip", "startswith", "endswith", "lower", "upper", "encode", "splitlines", "rsplit"}
GIVES = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)  # what is written out, as a list of networks, shows itself


@dataclass(frozen=True)
class Moving:
    """What moved its batches itself until a codemod took the calls away: loops by their lines and targets; the loaders
    of the `iter(loader)` that batches are drawn from by hand, by their last names, with its line and with the iterator.
    """

    loops: set[tuple[int, str]]
    drawn: set[tuple[int | str, str]]

    def add(self, facts: Facts, drawn: Iterable[ast.Call]) -> None:
        for m in drawn:
            self.drawn.update((at, _last_name(m.args[0])) for at in (m.lineno, _kept(facts, m)) if at)

    def has_drawn(self, line: int, kept: str, loader: str) -> bool:
        """Whether batches are drawn there of an `iter(loader)` that moved them: its name may have a prefix by now."""
        names = {at for at, of in self.drawn if of == loader}
        return line in names or any(isinstance(n, str) and n and f"_{kept}".endswith(f"_{n}") for n in names)

    def __bool__(self) -> bool:
        return bool(self.loops or self.drawn)


def place_batches(facts: Facts, edits: Edits, moving: Moving, line: Callable[[int], int]) -> list[Edit]:
    """`for x, y in on_device(loader):` in the evaluations that no Trainer runs, and where the loop moved its batches.

    `line`: of the original, where `moving` is, for one of this text.
    """
    said = []
    for loop, around in _loops(facts):
        row, target = _shown(loop)
        if (line(row), target) not in moving.loops and not _evaluates(facts, loop, around):
            continue
        source = looped_over(facts, loop)
        if _counts(source) or _holds_numbers(facts, source) or facts.is_fixed(source):
            continue
        if _gives_texts(loop, around) and not is_loader(facts, source):
            continue
        network = network_on_cpu(facts, around) or network_of(facts, around)
        said.append(_placed(facts, edits, source, around, line, network))
    kept, made = {at for at, _ in moving.drawn}, dict[object, Edit]()
    for call in (c for c in facts.walk(ast.Call) if moving.drawn and gives_batches(facts, c)):
        name = _last_name(call.args[0])
        if moving.has_drawn(line(call.lineno), _kept(facts, call), name) or name in kept:
            key = name if name in kept else call  # a step that makes it anew stands above what the script wrote
            made[key] = _placed(facts, edits, call.args[0], call, line)
    return [*said, *made.values()]


def evaluations(facts: Facts) -> list[ast.For]:
    """The loops that give batches to a network and train nothing."""
    return [loop for loop, around in _loops(facts) if isinstance(loop, ast.For) and _evaluates(facts, loop, around)]


def _loops(facts: Facts) -> Iterator[tuple[Loop, ast.For | Comprehension]]:
    """The loops of a file and those of its comprehensions, each with the node that holds its body."""
    yield from ((loop, loop) for loop in facts.walk(ast.For))
    for kind in COMPREHENSIONS:
        yield from ((loop, around) for around in facts.walk(kind) for loop in around.generators)


def _evaluates(facts: Facts, loop: Loop, around: ast.For | Comprehension) -> bool:
    """Whether a loop gives batches to a network and trains nothing: `[net(x).argmax(1) for x, y in loader]`."""
    if around in facts.loops.hot_loops:
        return facts.loops.hot_loops[around] == EVALUATES
    called = (isinstance(n, ast.Call) and works_with_network(facts, n) for n in walk(around))
    shown = facts.loops.is_loader(loop.iter) or is_loader(facts, looped_over(facts, loop))  # what a function gives, too
    return shown and any(called)


def _placed(
    facts: Facts, edits: Edits, source: ast.expr, at: ast.AST, line: Callable[[int], int], network: str | None = None
) -> Edit:
    start, stop = facts.text.span(source)
    edits.replace(start, start, f"{imported_as(facts, NAME)}(")
    edits.replace(stop, stop, f", {network})" if network else ")")
    row, column, _, _ = facts.text.key(at)
    where = f"`{network}` is" if network else "the Trainer placed the model"
    says = f"`{facts.short(source)}`: its batches go where {where}"
    return Edit(line(row), column + 1, CODE, says)


def draws_batches(facts: Facts) -> bool:
    """Whether a file goes over a loader, or evaluates what it is given."""
    return any(facts.loops.is_loader(loop.iter) or _evaluates(facts, loop, around) for loop, around in _loops(facts))


def moving_batches(facts: Facts, changes: Iterable[Change]) -> Moving:
    """Which loops over loaders, and which draws by hand, moved their batches until a codemod took the calls away."""
    moving = Moving(set(), set())
    for change in changes:
        if change.edit.code != MOVES or not change.told:
            continue
        read = {n.id for n in walk(change.node, ast.Name)} - _choosing(change.node) - _said(facts, change.node)
        if not _is_network(facts, change.node):
            for node, names in ((change.node, read), *_handing_on(facts, change.node, read)):
                moving.loops.update(_around(facts, node, names))
        moving.add(facts, _draws(facts, change.node, read))
    if "next" in facts.text.text:
        for call in facts.walk(ast.Call):
            it = draw_of(call)
            if it is not None and (made := makers(facts, it)) and _feeds_network(facts, call):
                moving.add(facts, made)
    return moving


def _around(facts: Facts, node: ast.AST, read: set[str]) -> Iterator[tuple[int, str]]:
    """The loops around what moves that give what it reads."""
    for up in facts.scopes.ancestors(node):
        if isinstance(up, ast.For) and facts.loops.is_loader(up.iter):
            drawn = {n.id for s in (up.target, *up.body) for n in walk(s, ast.Name) if _is_set(n)}
            if read & drawn:
                yield _shown(up)
        for loop in (up,) if isinstance(up, ast.For) else getattr(up, "generators", ()):
            if _is_of_recursion(facts, loop, up):
                return
            if _gives_what_moved(facts, loop, up, read):
                yield _shown(loop)


def _is_of_recursion(facts: Facts, loop: Loop, around: ast.AST) -> bool:
    """`[move(t) for t in x]` within `def move(x):`, which goes through what a batch holds."""
    f = next((up for up in facts.scopes.ancestors(around) if isinstance(up, ast.FunctionDef)), None)
    own = {a.arg for a in f.args.args} if f is not None else set()
    calls = (getattr(c.func, "id", "") for c in walk(around, ast.Call))
    return f is not None and f.name in calls and any(n.id in own for n in walk(loop.iter, ast.Name))


def _handing_on(facts: Facts, moved: ast.AST, read: set[str]) -> Iterator[tuple[ast.AST, set[str]]]:
    """The calls of a function that moved what it is given, with the names that they give it."""
    f = next((up for up in facts.scopes.ancestors(moved) if isinstance(up, ast.FunctionDef)), None)
    if f is None or f.name.startswith("__"):
        return
    for s in reversed(list(_assigns(f))):  # x, y = batch
        read = read | _taken_from(s.value) if _set_by(s) & read else read
    if not read & {a.arg for a in (*f.args.posonlyargs, *f.args.args)} - {"self"}:
        return
    holder = facts.scopes.parents.get(f)
    for call in facts.names.nodes.calls.get(f.name, ()):
        of = call.func
        own = isinstance(of, ast.Attribute) and facts.classes.is_self(of.value)
        own = own and any(up is holder for up in facts.scopes.ancestors(of))
        if own or (holder is facts.tree and isinstance(of, ast.Name)):
            spread = any(isinstance(a, ast.Starred) for a in call.args)
            given = given_to(call) if spread else [argument(call, f, name, own) for name in sorted(read)]
            yield call, {n.id for a in given if a is not None for n in walk(a, ast.Name)}


def _feeds_network(facts: Facts, draw: ast.Call) -> bool:
    """Whether a network gets what is drawn as it is: `x, y = next(it)`, `net(x)`. A data set, or a collate_fn, moved
    it; what the script moves itself is placed by that, or by what takes its move away.
    """
    around = next((u for u in facts.scopes.ancestors(draw) if isinstance(u, ast.FunctionDef)), facts.tree)
    names = {n for s in (draw, *facts.scopes.ancestors(draw)) if isinstance(s, SETS) for n in _set_by(s)}
    for made in _assigns(around):
        names |= _set_by(made) if names & (_taken_from(made.value) - _moved_in(facts, made.value)) else set()
    for call in (c for c in walk(around, ast.Call) if works_with_network(facts, c)):
        for a in given_to(call):
            given = {n.id for n in walk(a, ast.Name)} - _moved_in(facts, a)
            if names & given or draw in walk(a):
                return True
    return False


def _moved_in(facts: Facts, value: ast.expr) -> set[str]:
    """The x of `x.to(device)`: the script moves it itself."""
    moved = (facts.devices.moved(call) for call in walk(value, ast.Call))
    return {n.id for m in moved if m is not None for n in walk(m, ast.Name)}


def _shown(loop: Loop) -> tuple[int, str]:
    return loop.target.lineno, spelled(loop.target)


def _gives_what_moved(facts: Facts, loop: Loop, around: ast.AST, read: set[str]) -> bool:
    """`for x, y in held_out:`, whose x or y was moved: by that it gives batches, whatever its name is."""
    source = looped_over(facts, loop)
    if _counts(source) or _gives_parts(source) or not isinstance(source, GIVES):
        return False
    if in_step(facts, around):
        return False  # what is taken from a batch there is placed with it
    own = {n.id for n in walk(loop.target, ast.Name)}
    for s in () if read <= own else _leading_to(read, _assigns(around)):  # `x, y = batch`, `x = torch.cat(batch)`
        parts = isinstance(s.value, (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple))
        if own & _taken_from(s.value) and (parts or facts.placed.by_runtime(s.value)):
            own |= _set_by(s)
    own &= read
    called = {_called(n.func) for n in walk(around, ast.Call)} if own else own
    return bool(own) and not (own & called or any(uses(around).methods.get(n, set()) & OF_NETWORKS for n in own))


def _said(facts: Facts, node: ast.AST) -> set[str]:
    """The names that only say where to, `device` of `x.to(device)`, or how large a network is: `Net(size).cuda()`."""
    moves = [(c, m) for c in walk(node, ast.Call) if (m := facts.devices.moved(c)) is not None]
    where = (a for c, m in moves for a in given_to(c) if a is not m)
    own = {c.name for c in facts.classes.modules}
    made = (itself(m) for _, m in moves)
    sizes = (a for m in made if isinstance(m, ast.Call) and _called(m.func) in own for a in given_to(m))
    return {n.id for a in (*where, *sizes) for n in walk(a, ast.Name)} - {
        n.id for _, m in moves if not isinstance(m, ast.Call) for n in walk(m, ast.Name)
    }


def _choosing(node: ast.AST) -> set[str]:
    """The `name` of `getattr(models, name)(10)` and of `MODELS[name](10)`: it says what is called."""
    called = (call.func for call in walk(node, ast.Call))
    said = [f.slice if isinstance(f, ast.Subscript) else f for f in called if isinstance(f, ast.Subscript) or _gets(f)]
    return {n.id for part in said for n in walk(part, ast.Name)}


def _gets(func: ast.expr) -> bool:
    return isinstance(func, ast.Call) and isinstance(func.func, ast.Name) and func.func.id == "getattr"


def _is_network(facts: Facts, moved: ast.AST) -> bool:
    """Whether what was moved is used as a network where it is: `net = make(kind).to(device)`, `net.parameters()`."""
    s = facts.scopes.statement_of(moved)
    around = next((u for u in facts.scopes.ancestors(moved) if isinstance(u, ast.For)), None)
    methods = uses(around).methods if around is not None and isinstance(s, SETS) else {}
    return any(methods.get(name, set()) & OF_NETWORKS for name in (_set_by(s) if isinstance(s, SETS) else ()))


def _leading_to(names: set[str], assigns: list[Sets]) -> list[Sets]:
    """Those that give names their values, or what they are made of, in the same order."""
    sets, found = {s: _set_by(s) for s in assigns}, set[Sets]()
    while more := {s for s in assigns if s not in found and sets[s] & names}:
        found |= more
        names = names.union(*(_taken_from(s.value) for s in more))
    return [s for s in assigns if s in found]


def _set_by(s: Sets) -> set[str]:
    targets = s.targets if isinstance(s, ast.Assign) else [s.target]
    return {n.id for t in targets for n in walk(t, ast.Name)}


def _gives_parts(source: ast.expr) -> bool:
    """`net.modules()`, `zip(net.modules(), other.modules())`: parts of networks, which the runtime places."""
    if not isinstance(source, ast.Call):
        return False
    if isinstance(source.func, ast.Attribute):
        return source.func.attr in OF_NETWORKS
    return isinstance(source.func, ast.Name) and source.func.id == "zip" and any(map(_gives_parts, source.args))


def _taken_from(value: ast.expr) -> set[str]:
    """The names that a value is made of: `rows` of `rows[i]`."""
    index = {n for part in walk(value, ast.Subscript) for n in walk(part.slice)}
    return {n.id for n in walk(value, ast.Name) if n not in index}


def _called(func: ast.expr) -> str:
    """The net of `net(x)` and of `net.to(device)(x)`."""
    if isinstance(func, ast.Call) and isinstance(func.func, ast.Attribute):
        func = func.func.value
    return func.id if isinstance(func, ast.Name) else ""


def _draws(facts: Facts, node: ast.AST, names: set[str]) -> list[ast.Call]:
    """The `iter(loader)` that give names of a node their values, in the function around it."""
    if "next" not in facts.text.text:
        return []
    around = next((u for u in facts.scopes.ancestors(node) if isinstance(u, ast.FunctionDef)), facts.tree)
    own = (s for s in _assigns(around) if around is not facts.tree or not _in_function(facts, s))
    sets = [(s, _set_by(s)) for s in own]
    given, more = {id(s): s for s in _assigns(node)}, True
    while more:
        found = {id(s): s for s, targets in sets if targets & names and id(s) not in given}
        names = names | {n.id for s in found.values() for n in walk(s.value, ast.Name)}
        given, more = {**given, **found}, bool(found)
    return [m for s in (node, *given.values()) for m in drawn_by(facts, s)]


def _in_function(facts: Facts, s: ast.AST) -> bool:
    return any(isinstance(up, ast.FunctionDef) for up in facts.scopes.ancestors(s))


def _kept(facts: Facts, made: ast.Call) -> str:
    """The last name of `it`, where a statement keeps `iter(loader)` as that."""
    s = facts.scopes.statement_of(made)
    if not isinstance(s, ast.Assign):
        return ""
    pairs = [(s.targets[0], s.value)]
    if isinstance(s.targets[0], ast.Tuple) and isinstance(s.value, ast.Tuple):
        pairs = list(zip(s.targets[0].elts, s.value.elts, strict=False))
    return next((_last_name(target) for target, value in pairs if value is made), "")


def _assigns(node: ast.AST) -> list[Sets]:
    return [*walk(node, ast.Assign), *walk(node, ast.NamedExpr)]


def _last_name(node: ast.expr) -> str:
    """`tgt` of `tgt`, `self.tgt` and `loaders["tgt"]`; of a call what is called, as its arguments may be edited."""
    if isinstance(node, ast.Subscript):
        return _last_name(node.slice)
    if isinstance(node, ast.Call):
        return f"{_last_name(node.func)}()"
    return node.attr if isinstance(node, ast.Attribute) else spelled(node)


def _is_set(n: ast.Name) -> bool:
    return isinstance(n.ctx, ast.Store)


def _holds_numbers(facts: Facts, source: ast.expr) -> bool:
    """`[0.0, 0.5, 1.0]`, and a name that is given nothing else."""
    if isinstance(source, (ast.List, ast.Tuple)):
        return bool(source.elts) and all(isinstance(e, ast.Constant) for e in source.elts)
    home = facts.scopes.scope_of(source).lookup(source.id) if isinstance(source, ast.Name) else None
    if home is None or not isinstance(source, ast.Name):
        return False
    given = facts.devices.given(home, source.id) if source.id in home.params else None
    values = [*(given or ()), *(facts.devices.assigned(source.id, home) or () if source.id in home.stores else ())]
    return bool(values) and all(not isinstance(v, ast.Name) and _holds_numbers(facts, v) for v in values)


def _gives_texts(loop: Loop, around: ast.AST) -> bool:
    """`for line in lines:`, of which the loop asks what texts have: `line.strip()`, `line.split()`."""
    if not isinstance(loop.target, ast.Name):
        return False
    for call in walk(around, ast.Call):
        method = call.func if isinstance(call.func, ast.Attribute) else None
        if method is not None and spelled(method.value) == loop.target.id:
            plain = all(isinstance(a, ast.Constant) and isinstance(a.value, str) for a in call.args)
            by_text = plain and not call.keywords
            if method.attr in OF_TEXTS or (method.attr == "split" and by_text):
                return True
    return False


def _counts(source: ast.expr) -> bool:
    """`range(n)`, `reversed(range(n))`, `list(range(n))[::-1]`: what it gives is drawn from something else."""
    if isinstance(source, ast.Subscript):
        return _counts(source.value)
    if not isinstance(source, ast.Call):
        return False
    called = _last_name(source.func)
    again = called in ("reversed", "list", "tuple", "sorted", "tqdm") and bool(source.args)
    return _counts(source.args[0]) if again else called in ("range", "trange")

"""Tensors that the script makes above its loop and moves to a device there: they move with the Module instead.

    noise = torch.randn(64, 8)
    if args.cuda:
        noise = noise.cuda()

Where lifted code alone reads `noise`, its move goes, and the Module takes it along: as a buffer, or, where it may be no
plain tensor, or a step changes it in place, when the fit starts. Nothing else may see where it is in between.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..facts.effects import only_asks
from ..facts.nodes import walk
from ..facts.script import Facts
from .chunks import Binder
from .recipe import Recipe
from .splice import Splice

LOADERS = {f"torch.utils.data.{n}" for n in ("DataLoader", "TensorDataset", "random_split", "Subset", "ConcatDataset")}
LOOKS = {"shape", "size", "dim", "ndim", "dtype", "numel", "type"}
TELLS = {"len", "print", "type", "isinstance"}


@dataclass
class Moved:
    """The names that move with the Module, and what of the text goes for it."""

    tensors: set[str] = field(default_factory=set)  # what they hold is a plain tensor
    others: set[str] = field(default_factory=set)
    calls: list[ast.Call] = field(default_factory=list)  # the moves
    dropped: list[ast.stmt] = field(default_factory=list)  # statements that only moved


@dataclass
class _Name:
    """A name of the trunk: what moves it, what else it is given, and the names that are made from it."""

    moves: list[ast.Call] = field(default_factory=list)
    given: list[ast.expr | None] = field(default_factory=list)  # None: a part of what does not show
    makes: set[str] = field(default_factory=set)
    lifted: bool = False  # read in lifted code
    changed: bool = False  # in place


def moved_tensors(facts: Facts, recipe: Recipe, binder: Binder, taken: set[str]) -> Moved:
    """What of the trunk moves with the Module; `taken`: the names that its constructor gets."""
    names: dict[str, _Name] = {}
    for name in binder.trunk_scope.stores:
        known = _look(facts, recipe, binder, name) if name not in binder.trunk_scope.params else None
        if known is not None and (name in taken or not known.lifted):
            names[name] = known
    _settle(facts, names)
    found = Moved()
    for name in sorted(names):
        if names[name].lifted:
            (found.tensors if _is_plain(facts, names[name]) else found.others).add(name)
        found.calls += names[name].moves
    found.dropped = list(_only_moving(facts, found.calls))
    return found


def _settle(facts: Facts, names: dict[str, _Name]) -> None:
    """Leave only names that are moved, or made from such a one, and whose makes are among them."""
    while True:
        made = {m for n, k in names.items() for m in k.makes if m != n}
        out = {n for n, k in names.items() if not (k.moves or n in made) or not k.makes <= names.keys()}
        out |= {n for n, k in names.items() if not k.moves and not _is_plain(facts, k)}
        out |= {n for n, k in names.items() for m in k.moves if not _whole(facts, m, names)}
        out |= {n for n, k in names.items() if k.changed and (k.makes - {n} or n in made)}  # they may be one tensor
        if not out:
            return
        for n in out:
            del names[n]


def _whole(facts: Facts, move: ast.Call, names: dict[str, _Name]) -> bool:
    """Whether all that a statement moves is among the names: `a, b = a.cuda(), b.cuda()` goes as one."""
    s = facts.scopes.statement_of(move)
    return all(isinstance(n, ast.Name) and n.id in names for n in _targets(s))


def _targets(s: ast.stmt) -> list[ast.expr]:
    found: list[ast.expr] = []
    for t in s.targets if isinstance(s, ast.Assign) else []:
        found += t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t]
    return found


def _look(facts: Facts, recipe: Recipe, binder: Binder, name: str) -> _Name | None:
    """A name whose every value and read shows to allow it."""
    known = _Name(changed=changed_in_place(facts, binder, name))
    for store in binder.trunk_scope.stores[name]:
        if not _before(facts, recipe, store) or not _add_value(facts, store, name, known):
            return None
    passes = {p.function for p in (recipe.train, recipe.evaluate) if p is not None and p.function is not None}
    lifted = {recipe.epoch_loop, *(f for f in passes if len(facts.devices.uses_of_function(f)) == 1)}
    receivers = {n for m in known.moves for n in [m.func.value] if isinstance(n, ast.Name)}  # type: ignore[attr-defined]
    reads = [r for r in facts.scopes.reads(name, binder.trunk_scope) if r not in receivers]
    for read in reads:
        if lifted & set(facts.scopes.ancestors(read)):
            known.lifted = True
        elif not (_before(facts, recipe, read) and _add_read(facts, read, known)):
            return None
    return known if reads else None


def _add_value(facts: Facts, store: ast.AST, name: str, known: _Name) -> bool:
    """Note what one assignment gives the name; False where it is none, or moves in a way of its own."""
    up = facts.scopes.parents.get(store)
    value: ast.expr | None = None
    if isinstance(up, ast.Assign) and len(up.targets) == 1:
        value = up.value
    elif isinstance(up, ast.Tuple) and isinstance(outer := facts.scopes.parents.get(up), ast.Assign):
        if len(outer.targets) > 1:
            return False
        if isinstance(outer.value, ast.Tuple):
            if len(outer.value.elts) != len(up.elts):
                return False
            value = outer.value.elts[up.elts.index(store)]  # type: ignore[arg-type]
    else:
        return False
    if isinstance(value, ast.Call) and (made := facts.devices.moved(value)) is not None:
        if len(value.args) + len(value.keywords) > 1 or facts.is_fixed(value):
            return False
        known.moves.append(value)
        value = made
    if not (isinstance(value, ast.Name) and value.id == name):
        known.given.append(value)
    return value is None or not _names_device(facts, value)


def _names_device(facts: Facts, value: ast.expr) -> bool:
    """Whether a value is placed in itself: `torch.zeros(3, device=device) * 2`."""
    for n in walk(value, ast.Call):
        if facts.devices.moved(n) is not None or any(k.arg == "device" for k in n.keywords):
            return True
    return False


def _add_read(facts: Facts, read: ast.Name, known: _Name) -> bool:
    """Whether a read above the loop is told nothing of where the value is, or makes another name from it."""
    up = facts.scopes.parents.get(read)
    if isinstance(up, ast.Attribute) and up.attr in LOOKS:
        return True
    if isinstance(up, ast.Call) and read in up.args:
        if isinstance(up.func, ast.Name) and up.func.id in TELLS:
            return True
        if facts.names.resolve(up.func) in LOADERS:
            return _for_loaders(facts, up)
    s = facts.scopes.statement_of(read)
    if isinstance(s, ast.Expr):  # `noise.normal_()`
        f = s.value.func if isinstance(s.value, ast.Call) else None
        return isinstance(f, ast.Attribute) and f.value is read and f.attr.endswith("_") and not f.attr.startswith("_")
    made = {n.id for n in _targets(s) if isinstance(n, ast.Name)}
    known.makes |= made
    return bool(made) and len(made) == len(_targets(s))


def _for_loaders(facts: Facts, call: ast.Call, known: frozenset[ast.Call] = frozenset()) -> bool:
    """Whether a data set is given to loaders alone, whose batches the runtime places.

    `known`: the calls that it came through: `data, rest = random_split(data, sizes)` reads what it gives.
    """
    if call in known or facts.names.resolve(call.func) == "torch.utils.data.DataLoader":
        return True
    up, known = facts.scopes.parents.get(call), known | {call}
    if isinstance(up, ast.Call) and facts.names.resolve(up.func) in LOADERS:
        return _for_loaders(facts, up, known)
    if not (isinstance(up, ast.Assign) and len(up.targets) == 1):
        return False
    names = [n for n in _targets(up) if isinstance(n, ast.Name)]
    reads = [
        (r, facts.scopes.parents.get(r))
        for n in names
        for r in facts.scopes.reads(n.id, facts.scopes.scope_of(n).lookup(n.id) or facts.scopes.scope_of(n))
    ]
    plain = len(names) == len(_targets(up)) and len({n.id for n in names}) == len(names)
    return plain and all(
        isinstance(p, ast.Call)
        and r in p.args
        and (
            (isinstance(p.func, ast.Name) and p.func.id == "len")
            or (facts.names.resolve(p.func) in LOADERS and _for_loaders(facts, p, known))
        )
        for r, p in reads
    )


def _before(facts: Facts, recipe: Recipe, node: ast.AST) -> bool:
    """Whether a node stands above the epoch loop, below nothing but conditions that only ask, and what holds both."""
    around = set(facts.scopes.ancestors(recipe.epoch_loop))
    for up in facts.scopes.ancestors(node):
        if up in around:
            return getattr(node, "lineno", 0) < recipe.epoch_loop.lineno
        if isinstance(up, ast.If) and not only_asks(facts.names, up.test):
            return False
        if isinstance(up, ast.stmt) and not isinstance(up, (ast.If, ast.Assign, ast.Expr)):
            return False
    return False


def _is_plain(facts: Facts, known: _Name) -> bool:
    return bool(known.given) and all(v is not None and facts.tensors.is_tensor(v) for v in known.given)


def _only_moving(facts: Facts, calls: list[ast.Call]) -> Iterator[ast.stmt]:
    """The statements that do nothing once the calls are gone, and the conditions around nothing but those."""
    splice, moves = Splice(facts.text), set(calls)
    idle = {s for c in calls if _moves_only(s := facts.scopes.statement_of(c), moves)}
    lines: list[ast.stmt] = []
    for s in sorted(idle, key=lambda s: s.lineno):
        at: ast.stmt = s
        while isinstance(up := facts.scopes.parents.get(at), ast.If) and not up.orelse and idle.issuperset(up.body):
            at = up
            idle = idle | {up}
        block = next((b for b in _blocks(facts.scopes.parents.get(at)) if at in b), [])
        if not splice.shares_a_line(at) and not idle.issuperset(block):
            lines.append(at)
    yield from dict.fromkeys(s for s in lines if not any(up in lines for up in facts.scopes.ancestors(s)))


def _blocks(holder: ast.AST | None) -> list[list[ast.stmt]]:
    blocks = (getattr(holder, name, None) for name in ("body", "orelse", "finalbody"))
    return [b for b in blocks if isinstance(b, list)]


def _moves_only(s: ast.stmt, moves: set[ast.Call]) -> bool:
    """`a, b = a.cuda(), b.cuda()`"""
    if not isinstance(s, ast.Assign) or len(s.targets) > 1:
        return False
    values = s.value.elts if isinstance(s.value, ast.Tuple) else [s.value]
    pairs = zip(_targets(s), values, strict=False)
    return len(values) == len(_targets(s)) and all(
        v in moves and isinstance(t, ast.Name) and isinstance(v.func.value, ast.Name) and v.func.value.id == t.id  # type: ignore[attr-defined]
        for t, v in pairs
    )


def changed_in_place(facts: Facts, binder: Binder, name: str) -> bool:
    """Whether anything but an assignment changes what the name holds: `noise.normal_()`, `seen[i] = x`, `out=noise`."""
    parents = facts.scopes.parents
    for read in facts.scopes.reads(name, binder.trunk_scope):
        node: ast.AST = read
        while isinstance(up := parents.get(node), (ast.Attribute, ast.Subscript, ast.Call)):
            if isinstance(up, ast.Call) and up.func is not node:
                break
            if isinstance(up, ast.Attribute) and up.attr.endswith("_") and not up.attr.startswith("_"):
                return True
            node = up
        if isinstance(up, ast.AugAssign) or (isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)):
            return True
        if isinstance(up, ast.keyword) and up.arg == "out":
            return True
    return False

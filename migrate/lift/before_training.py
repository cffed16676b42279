"""Evaluations of a lifted script that no training comes before: `if args.evaluate: validate(...); return`.

The Trainer places the networks when it begins. Such a run is right, and on the CPU; it is told of.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..facts.arguments import argument, given_to
from ..facts.loops import EVALUATES
from ..facts.nodes import walk
from ..facts.runtime_names import RUNTIME
from ..facts.script import Facts
from ..report import Note
from .called_networks import called_there, given_networks

CODE = "PTM101"
OF_NETWORKS = ("train", "eval", "forward")  # which every network has
Function = ast.FunctionDef | ast.AsyncFunctionDef


def evaluated_before(facts: Facts, loops: list[ast.For], line: Callable[[int], int]) -> Iterator[Note]:
    """A note for each evaluation, or call of a function with one, that runs where nothing has been trained.

    `loops`: those that evaluate. `line`: of the original for one of this text.
    """
    fits = [c for c in facts.calls_of("fit") if _is_trainers(facts, c)]
    found = [(site, loop.iter) for loop in loops for site in _sites(facts, loop)] if fits else []
    found += [(call, call) for call in _evaluated_elsewhere(facts)] if fits else []
    told: set[ast.AST] = set()
    for site, loader in found:
        begun = [runs for fit in fits if (runs := list(_beside(facts, site, fit)))]
        if site in told or not any(all(_misses(facts, site, run) for run in runs) for runs in begun):
            continue
        told.add(site)
        row, column, _, _ = facts.text.key(site)
        shown = f"`{facts.short(site if isinstance(site, ast.Call) else loader)}`"
        says = f"{shown}: an evaluation where the Trainer has not placed the networks runs on the CPU"
        yield Note(line(row), column + 1, CODE, f"{says}: on a GPU, move what it works with there first")


def _evaluated_elsewhere(facts: Facts) -> Iterator[ast.Call]:
    """The calls that give a network to a function of another file which goes over batches and trains nothing, or which
    runs it on what it moves to a device that it is given, too.
    """
    for call in facts.walk(ast.Call) if facts.others else ():
        networks = given_networks(facts, call)
        there, f = called_there(facts, call) if networks else (facts, None)
        if not isinstance(f, ast.FunctionDef) or there is facts:
            continue
        evaluates = EVALUATES in {there.loops.hot_loops.get(n) for n in walk(f)}
        if evaluates or _runs_on_device(facts, call, there, f, networks):
            yield call


def _runs_on_device(facts: Facts, call: ast.Call, there: Facts, f: ast.FunctionDef, networks: list[ast.expr]) -> bool:
    """`data.rate(net, device)`, where rate() has `net(x.to(device))`, `net.forward(x.to(device))`."""
    if not any(facts.devices.says_where(a) and not facts.devices.is_host(a) for a in given_to(call)):
        return False
    bound, own = there.classes.holder(f) is not None, there.scopes.by_node[f].params
    gets = {name for name in own if argument(call, f, name, bound) in networks}
    runs = places = False
    for n in walk(f, ast.Call):
        if isinstance(n.func, ast.Attribute) and n.func.attr == "backward":
            return False
        of = n.func.value if isinstance(n.func, ast.Attribute) and n.func.attr == "forward" else n.func
        runs = runs or (isinstance(of, ast.Name) and of.id in gets)
        moved = there.devices.moved(n)
        places = places or (moved is not None and not (isinstance(moved, ast.Name) and moved.id in gets))
    return runs and places


def _is_trainers(facts: Facts, call: ast.Call) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    scope = facts.scopes.scope_of(owner).lookup(owner.id) if isinstance(owner, ast.Name) else None
    values = facts.devices.assigned(owner.id, scope) if scope is not None and isinstance(owner, ast.Name) else None
    made = [v.func for v in values or () if isinstance(v, ast.Call)]
    return any(facts.names.resolve(f) == f"{RUNTIME}.Trainer" for f in made)


def _sites(facts: Facts, loop: ast.For) -> Iterator[ast.AST]:
    """The loop where a script's own lines have it, and the calls of the function that has it; none of a Module's."""
    f = _function(facts, loop)
    if f is None:
        yield loop
    elif _places_its_own(facts, f, loop):
        return
    elif facts.classes.holder(f) is None:
        yield loop
        yield from _calls(facts, f, set())
    else:
        alone = sum(f.name in facts.classes.methods(c) for c in facts.walk(ast.ClassDef)) == 1
        yield from facts.calls_of(f.name) if alone and f.name not in OF_NETWORKS else ()


def _calls(facts: Facts, f: Function, seen: set[Function]) -> Iterator[ast.Call]:
    """The calls of a function, and those of the functions that call it: `get_features(net, loader)`."""
    seen.add(f)
    for u in facts.classes.uses_of(f):
        if not isinstance(u, ast.Call):
            continue
        yield u
        home = _function(facts, u)
        if home is not None and home not in seen and facts.classes.holder(home) is None:
            yield from _calls(facts, home, seen)


def _places_its_own(facts: Facts, f: Function, loop: ast.For) -> bool:
    """Whether a loop runs a network that its function makes, and moves itself."""
    own = facts.scopes.by_node[f]
    called = {n.func.id for n in walk(loop, ast.Call) if isinstance(n.func, ast.Name)}
    moves = [n for n in walk(f, ast.Call) if facts.devices.moved(n) is not None]
    moved = {n.id for c in moves for n in (facts.devices.moved(c), *_targets(facts, c)) if isinstance(n, ast.Name)}
    return any(name in own.stores and name not in own.params for name in called & moved)


def _targets(facts: Facts, call: ast.Call) -> list[ast.expr]:
    s = facts.scopes.parents.get(call)
    return s.targets if isinstance(s, ast.Assign) else []


def _beside(facts: Facts, site: ast.AST, fit: ast.Call) -> Iterator[ast.AST]:
    """A Trainer's training in the function of a call, or the calls there of a function or method that has it."""
    home, f = _function(facts, site), _function(facts, fit)
    if f is home:
        yield fit
    elif f is not None:
        uses = facts.calls_of(f.name) if facts.classes.holder(f) is not None else facts.classes.uses_of(f)
        yield from (u for u in uses if isinstance(u, ast.Call) and _function(facts, u) is home)


def _misses(facts: Facts, site: ast.AST, fit: ast.AST) -> bool:
    """Whether a run may come to one node without the other: that is below, or under a condition that this is not."""
    looped = {up for up in facts.scopes.ancestors(fit) if isinstance(up, (ast.For, ast.While))}
    if any(up in looped for up in (site, *facts.scopes.ancestors(site))):
        return False
    above = dict(_branches(facts, site))
    return facts.text.key(site) < facts.text.key(fit) or any(
        above.get(up) is not at for up, at in _branches(facts, fit)
    )


def _branches(facts: Facts, node: ast.AST) -> Iterator[tuple[ast.If, bool]]:
    """The conditions above a node, each with whether it is of the body."""
    below = node
    for up in facts.scopes.ancestors(node):
        if isinstance(up, ast.If):
            yield up, below in up.body
        below = up


def _function(facts: Facts, node: ast.AST) -> Function | None:
    return next((up for up in facts.scopes.ancestors(node) if isinstance(up, Function)), None)

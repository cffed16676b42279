"""Several trainings in one script, one after the other: each becomes a Module with a Trainer of its own.

While one is lifted the `backward` of the others has another name, so that nothing takes them for a part of it; the
statements stay where they are. Trainings that share an epoch, or run inside one another, are not told apart.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..facts.nodes import walk
from ..facts.of_inputs import is_of_inputs
from ..facts.own_methods import differentiates_nothing
from ..facts.script import Facts
from ..line_map import line_map
from ..report import Edit, Note, at_line
from .recipe import CannotLift
from .shape.calls import of_another, only_call

TRAINS, WAITS = "backward", "backwar_"  # as long as one another: a place in the text is the same in both
AROUND = 2  # the loops of a training: over batches, and over epochs
Lifted = tuple[str, str, list[Edit], list[Note]]


def lift_each(facts: Facts, lift: Callable[[Facts], Lifted]) -> Lifted | None:
    """The text with every training lifted by itself; None where there is but one, CannotLift where one cannot be.

    `lift`: for the facts of a text with one training. The lines of edits and notes are those of `facts`.
    """
    groups = trainings(facts, TRAINS)
    if len(groups) < 2 or WAITS in facts.text.text or facts.precision is not None:
        return None
    plans = set()
    edits: list[Edit] = []
    notes: list[Note] = []
    text = facts.text.text
    for i in range(len(groups)):
        line = line_map(text, facts.text.text)
        if i == 0:
            one = facts.after(_renamed(facts, [call for group in groups[1:] for call in group], WAITS))
        else:
            waiting = facts.after(text)
            one = facts.after(_renamed(waiting, trainings(waiting, WAITS)[0], TRAINS))
        try:
            text, plan, told, more = lift(one)
        except CannotLift as why:
            why.line = line(why.line)
            raise
        plans.add(plan)
        edits += [at_line(e, line) for e in told]
        notes += [at_line(n, line) for n in more]
    return text, "manual" if "manual" in plans else "module", edits, notes


def trainings(facts: Facts, name: str) -> list[list[ast.Call]]:
    """The calls of backward() of each training, in the order of the text; those that share their loops are one."""
    groups: list[tuple[set[ast.AST], list[ast.Call]]] = []
    for call in _calls(facts, name):
        loops, calls = set(_loops(facts, call)[:AROUND]), [call]
        for group in [g for g in groups if g[0] & loops]:
            groups.remove(group)
            loops, calls = loops | group[0], [*group[1], *calls]
        groups.append((loops, calls))
    return sorted((calls for _, calls in groups), key=lambda calls: facts.text.span(calls[0])[0])


def apart(facts: Facts, epoch_loop: ast.AST) -> None:
    """CannotLift where another training runs inside of this one, as far as names tell."""
    ahead: list[ast.AST] = [epoch_loop]
    seen: set[ast.AST] = set()
    while ahead:
        for n in walk(ahead.pop()):
            if isinstance(n, ast.Call) and _trains(n):
                raise CannotLift(n, "one training runs inside of another")
            reached = [d for d in _named(facts, n) if d not in seen]
            seen.update(reached)
            ahead += reached


def _named(facts: Facts, n: ast.AST) -> Iterator[ast.AST]:
    """The functions, methods and classes of this file that a name or an attribute may be."""
    if isinstance(n, ast.Name):
        yield from (f for f in facts.walk(ast.FunctionDef) if f.name == n.id and facts.classes.holder(f) is None)
        yield from (c for c in facts.walk(ast.ClassDef) if c.name == n.id)
    elif isinstance(n, ast.Attribute):
        call = facts.scopes.parents.get(n)
        for f in facts.walk(ast.FunctionDef):
            if f.name != n.attr or facts.classes.holder(f) is None:
                continue
            if not (isinstance(call, ast.Call) and call.func is n and of_another(facts, call, n, f)):
                yield f


def _trains(call: ast.Call) -> bool:
    """Whether a call is the backward() of a training that waits, or the fit() of one that is lifted."""
    f = call.func
    if not isinstance(f, ast.Attribute):
        return False
    return f.attr == WAITS or (f.attr == "fit" and isinstance(f.value, ast.Name) and f.value.id.endswith("trainer"))


def _calls(facts: Facts, name: str) -> Iterator[ast.Call]:
    for call in facts.calls_of(name):
        own = facts.names.resolve(call.func) is not None or differentiates_nothing(facts, call.func)
        if not (own or is_of_inputs(facts, call)):
            yield call


def _loops(facts: Facts, call: ast.AST) -> list[ast.AST]:
    """The loops that a call stands in, the innermost first, through functions that are called from one place."""
    found: list[ast.AST] = []
    seen: set[ast.AST] = set()
    while True:
        for up in facts.scopes.ancestors(call):
            if isinstance(up, (ast.For, ast.While)):
                found.append(up)
            elif isinstance(up, ast.FunctionDef):
                only = only_call(facts, up)
                if only is not None and up not in seen:
                    seen.add(up)
                    call = only
                    break
        else:
            return found


def _renamed(facts: Facts, calls: list[ast.Call], name: str) -> str:
    """The text with the method of these calls under another name of the same length."""
    text = facts.text.text
    for call in calls:
        stop = facts.text.span(call.func)[1]
        text = text[: stop - len(name)] + name + text[stop:]
    return text

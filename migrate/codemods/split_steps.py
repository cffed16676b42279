"""T6: what a step does with the whole batch goes to `training_step_end`, which sees it on dp and ddp2 too.

Only where a step is given parts at all: on ptmigrate's runtime, or by a Trainer of Lightning's that is asked for dp or
ddp2. The step is cut before its first operation that mixes samples; what crosses the cut is returned, a dictionary when
there is more than one. A model call inside the first such statement stays in the step, under a name of its own. What is
a number, a size or made anew is made again behind the cut.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..facts.arguments import argument_at
from ..facts.asked_parts import PARTS, asked_mode, gives_parts, of_runtime
from ..facts.batch_values import BATCH, Flow
from ..facts.classes import STEPS, Function
from ..facts.nodes import FUNCTIONS, walk, walk_own
from ..facts.script import Facts
from ..report import Note
from .base import Change, Codemod
from .cutting import Crossing, Cut, behind_models, calls_model, cut
from .cutting_rewrites import Marks, hoisted, split
from .rewrites import source

KINDS = ("training", "validation", "test")
EVALUATIONS = {f"{kind}_step" for kind in KINDS[1:]}  # of these what they log is what they are for
BY_HAND = {"manual_backward", "backward", "optimizers", "toggle_optimizer", "toggle_model", "untoggle_optimizer"}


class SplitSteps(Codemod):
    code = "PTM430"
    name = "split-steps"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        for c in facts.classes.run_by_trainer:
            asked = gives_parts(facts, c)
            methods = facts.classes.methods(c)
            if asked_mode(facts) not in (None, *PARTS) and of_runtime(facts, c) and not _says_how(facts, c):
                self._of_processes(facts, c, methods.get(f"{KINDS[0]}_step"))
            if asked is False:
                continue
            helpers: dict[str, list[_Place]] = {}
            alone: list[_Place] = []
            for kind in KINDS:
                step = methods.get(f"{kind}_step")
                place = self._place(facts, c, step, None) if isinstance(step, ast.FunctionDef) else None
                if place is None:
                    continue
                if f"{kind}_step_end" in methods:
                    self._leave(facts, place, f"there is a {kind}_step_end already")
                    continue
                helper = self._helper(facts, c, place)
                if helper is not None:
                    helpers.setdefault(helper, []).append(place)
                else:
                    alone.append(place)
            for place in alone:
                if place.f.name not in helpers:  # a step that another one calls is cut with it
                    yield from self._step(facts, place, asked)
            for name, places in helpers.items():
                yield from self._with_helper(facts, c, name, places, asked)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def within_autocast(self, facts: Facts) -> bool:
        """Whether a step mixes its samples inside a `with`, of which a cut would take the model along."""
        self.left = []
        cut = [c for c in facts.classes.run_by_trainer if gives_parts(facts, c)]
        steps = [facts.classes.methods(c).get(f"{k}_step") for c in cut for k in KINDS]
        for f in steps:
            place = self._place(facts, facts.classes.holder(f), f, None) if isinstance(f, ast.FunctionDef) else None  # type: ignore[arg-type]
            if place is not None and isinstance(place.f.body[place.at], ast.With):
                return True
        return False

    def _place(self, facts: Facts, c: ast.ClassDef, f: ast.FunctionDef, batch: str | None) -> _Place | None:
        """Where a function first mixes the samples of its batch; None where it does not."""
        parameters = [a.arg for a in (*f.args.posonlyargs, *f.args.args)][1:]
        if not parameters:
            return None
        batch = batch or parameters[0]
        flow = facts.mixing.flow(f, {batch: replace(BATCH, holds=True)}, c)
        flow.mixes += [n for v in flow.returned for n in v.of_places().all_bent()]
        if f.name in EVALUATIONS:
            flow.mixes += [n for v in flow.logged for n in v.all_bent()]
        at = flow.first(f.body)
        if at is None and f.name == f"{KINDS[0]}_step" and asked_mode(facts) in PARTS:
            for node in (n for v in flow.logged for n in v.all_bent()):
                says = (
                    f"`{facts.short(node)}` in {f.name} is logged for each device's part: its mean is not that of all"
                )
                self._note(facts, node, says)
        if at is None or flow.first(f.body[:at], flow.may_mix) is not None:
            for node in flow.may_mix:
                self._may(facts, f, node)
            return None
        inside = set(flow.mixes)
        first = next(n for n in walk(f.body[at]) if n in inside)
        return _Place(c, f, flow, at, first, batch)

    def _step(self, facts: Facts, place: _Place, asked: bool | None) -> Iterator[Change]:
        why = _not_to_be_cut(facts, place, asked)
        if why is None:
            later = behind_models(facts, place.c, place.f, place.flow, place.at)
            for at in dict.fromkeys((later, place.at)):
                try:
                    found = cut(facts, place.c, place.f, place.flow, at, place.batch)
                    yield from self._cut(facts, place, found)
                    return
                except Crossing as crossing:
                    why = str(crossing)
        assert why is not None
        self._leave(facts, place, why)

    def _leave(self, facts: Facts, place: _Place, why: str) -> None:
        where = f"`{facts.short(place.first)}` in {place.f.name} mixes the samples of a batch"
        self._note(facts, place.first, f"{where}, of which dp and ddp2 give a part: not split: {why}")

    def _of_processes(self, facts: Facts, c: ast.ClassDef, step: Function | None) -> None:
        """A training step that mixes its samples: each rank has a share of the batch, where the module allows that."""
        left, self.left = self.left, []  # what else is told of it is told where it is cut
        place = self._place(facts, c, step, None) if isinstance(step, ast.FunctionDef) else None
        self.left = left
        if place is not None:
            where = f"`{facts.short(place.first)}` in {place.f.name} mixes the samples of a batch"
            says = "of several processes each mixes its own"
            self._note(facts, place.first, f"{where}: {says}; `divide_batches = False` in {c.name} gives it the whole")

    def _may(self, facts: Facts, f: ast.FunctionDef, node: ast.AST) -> None:
        says = f"`{facts.short(node)}` in {f.name} may mix the samples of a batch, of which dp and ddp2 give a part"
        self._note(facts, node, says + ": not split: how many dimensions it has does not show")

    def _note(self, facts: Facts, node: ast.AST, says: str) -> None:
        line, column, _, _ = facts.text.key(node)
        self.left.append(Note(line, column + 1, self.code, says))

    def _cut(self, facts: Facts, place: _Place, found: Cut, instead: str | None = None) -> Iterator[Change]:
        marks = Marks()
        step, first = place.f, place.first
        says = f"`{facts.short(first)}` mixes the samples of a batch: {step.name} returns {_listed(found.crossing)}"
        edit = self.edit(facts, first, f"{says}, {step.name}_end does the rest on the whole batch")
        for i, s in enumerate(step.body):
            stays = self.edit(facts, s, f"`{facts.short(s)}` stays in {step.name}") if i in found.ahead else None
            yield Change(s, stays or edit, marks.mark(i), told=stays is not None)
        for name, (e, statement) in found.hoisted.items():
            yield Change(e, edit, hoisted(marks, name, statement, instead), told=False)
        for e, name in found.same:
            yield Change(e, edit, source(name), told=False)
        yield Change(step, edit, split(marks, found, len(step.body)))

    # -- a helper that several steps call ----------------------------------------------------------------------

    def _helper(self, facts: Facts, c: ast.ClassDef, place: _Place) -> str | None:
        """The method that mixes for the step, when a model is called in it."""
        call = place.first
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            return None
        if not (isinstance(call.func.value, ast.Name) and call.func.value.id == "self"):
            return None
        method = facts.classes.methods(c).get(call.func.attr)
        fits = isinstance(method, ast.FunctionDef) and method.name != "forward" and calls_model(facts, c, method)
        return call.func.attr if fits else None

    def _with_helper(
        self, facts: Facts, c: ast.ClassDef, name: str, places: list[_Place], asked: bool | None
    ) -> Iterator[Change]:
        """`self._shared_step(batch, "train")`: the helper is cut, and each step calls its two halves."""
        method = facts.classes.methods(c)[name]
        assert isinstance(method, ast.FunctionDef)
        try:
            inner, cuts, calls = self._halves(facts, c, method, places, asked)
        except Crossing as crossing:
            own = self._place(facts, c, method, None) if name in STEPS else None
            for place in [*places, *([own] if own is not None else [])]:
                self._leave(facts, place, str(crossing))
            return
        for place, found, again in zip(places, cuts, calls, strict=True):
            yield from self._cut(facts, place, found, again)
        yield from self._cut(facts, inner[0], inner[1])

    def _halves(
        self, facts: Facts, c: ast.ClassDef, method: ast.FunctionDef, places: list[_Place], asked: bool | None
    ) -> tuple[tuple[_Place, Cut], list[Cut], list[str]]:
        uses = [a for a in facts.attributes.get(method.name, ()) if _of_a_module(facts, a)]
        calls = [p.first for p in places if isinstance(p.first, ast.Call)]
        if len(uses) != len(calls) or f"{method.name}_end" in facts.classes.methods(c):
            raise Crossing(f"{method.name}() has other callers")
        given = [a.arg for a in (*method.args.posonlyargs, *method.args.args)][1:]
        batch = given[0] if given else ""
        inner = self._place(facts, c, method, batch)
        if inner is None:
            raise Crossing(f"{method.name}() mixes what it is not given first")
        for place in [*places, inner]:
            why = _not_to_be_cut(facts, place, asked)
            if why is not None:
                raise Crossing(why)
        found = cut(facts, c, method, inner.flow, inner.at, batch, passes=method.name not in STEPS)
        again, cuts = [], []
        for place, call in zip(places, calls, strict=True):
            outer = cut(facts, c, place.f, place.flow, place.at, place.batch, call)
            if outer.crossing != ["outputs"]:
                raise Crossing(f"{place.f.name} needs more than {method.name}() gives")
            cuts.append(outer)
            again.append(_called_again(facts, method, call, found))
        return (inner, found), cuts, again


@dataclass
class _Place:
    """A function, followed from its batch on, and where it first mixes."""

    c: ast.ClassDef
    f: ast.FunctionDef
    flow: Flow
    at: int
    first: ast.AST
    batch: str


def _says_how(facts: Facts, c: ast.ClassDef) -> bool:
    """Whether a class, or one that it derives from, says how its batches are divided."""
    own = [s for d in facts.classes.above(c) for s in d.body if not isinstance(s, FUNCTIONS)]
    return any(n.id == "divide_batches" for s in own for n in walk(s, ast.Name))


def _called_again(facts: Facts, method: ast.FunctionDef, call: ast.Call, found: Cut) -> str:
    """`self._shared_step_end(outputs, "train")`."""
    arguments = ["outputs"]
    for name in found.passed:
        place = [a.arg for a in (*method.args.posonlyargs, *method.args.args)].index(name) - 1
        given = argument_at(call, name, place)
        if given is None:
            continue  # its default, which the second half has too
        if any(n.id != "self" for n in walk(given, ast.Name)):
            raise Crossing(f"`{facts.short(given)}` is needed behind the cut, and is not of the batch")
        arguments.append(f"{name}={facts.text.get(given)}")
    return f"self.{method.name}_end({', '.join(arguments)})"


def _of_a_module(facts: Facts, a: ast.Attribute) -> bool:
    """`self.step`, `super().step`, `model.step`; not an optimizer's or a schedule's."""
    name = a.value.attr if isinstance(a.value, ast.Attribute) else getattr(a.value, "id", "")
    return not re.search(r"opt|sched|scaler|warmup", name)


def _extended(facts: Facts, place: _Place) -> ast.ClassDef | None:
    """A class of this file that overrides the step, and asks the one above for its result."""
    for n in facts.walk(ast.Attribute):
        if n.attr != place.f.name or not isinstance(n.ctx, ast.Load):
            continue
        holder = next((u for u in facts.scopes.ancestors(n) if isinstance(u, ast.ClassDef)), None)
        if holder is None or holder is place.c:
            continue
        asks = isinstance(n.value, ast.Call) and ast.unparse(n.value.func) == "super"
        named = [b.id for b in holder.bases if isinstance(b, ast.Name)]
        if (asks and place.c.name in named) or ast.unparse(n.value) == place.c.name:
            return holder
    return None


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]


def _not_to_be_cut(facts: Facts, place: _Place, asked: bool | None) -> str | None:
    step = place.f
    if asked is None:
        return f"no Trainer here asks for dp or ddp2, and Lightning has neither them nor {step.name}_end since 2.0"
    if any(n.attr in BY_HAND for n in walk(step, ast.Attribute)):
        return "it optimizes by hand"
    above = _extended(facts, place)
    if above is not None:
        return f"{above.name} goes on with what {step.name}() returns"
    own = list(walk_own(step.body))
    if any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await, ast.Nonlocal, ast.Global)) for n in own):
        return "it is no plain function"
    early = next((n for n in walk_own(step.body[: place.at]) if isinstance(n, ast.Return)), None)
    if early is not None:
        return f"it may return before, on line {early.lineno}"
    if isinstance(place.first, ast.Call) and ast.unparse(place.first.func) in ("self", "self.forward"):
        return "forward() does it"
    return None

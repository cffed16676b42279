"""A file that has no loop to lift: its definitions, and what a script around a Trainer does itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from .codemods.back_on_cpu import BackOnCpu
from .codemods.base import Change, apply
from .codemods.every import outermost, plan_all, seen
from .codemods.once import NAMES, Once, names_read
from .codemods.placed_by_itself import HANDLE, placed_by_itself
from .codemods.places_itself import places_itself
from .codemods.remove_device_calls import WHY
from .facts.loops import EVALUATES, OPTIMIZER_NAME, last_part
from .facts.out_of_sight import steps_without_backward
from .facts.runtime_names import RUNTIME, as_import, imported_as
from .facts.script import Facts, facts_of
from .lift.imports import add_imports
from .lift.placing import NAME as ON_DEVICE
from .lift.placing import moving_batches, place_batches
from .lift.shape.edits import Edits
from .line_map import line_map
from .report import Edit, Note
from .result import Options, Result

ON_CPU = "nothing here trains, and all of it stays on the CPU"


def without_loop(facts: Facts, options: Options, is_script: bool) -> Result:
    """The edits of the codemods, where nothing is lifted."""
    changes = plan_all(facts, options.wants)
    alone = is_script and not (options.of_lifted or facts.is_library or facts.classes.run_by_trainer)
    if alone:  # nothing brings its tensors to a card, from where they would have to come back
        changes = [c for c in changes if c.edit.code != BackOnCpu.code]
    if (is_script or facts.untrained) and not options.of_lifted:
        changes = places_itself(facts, changes, options.wants)
    if options.of_lifted and options.wants(Once.code):
        changes = outermost(facts, [*changes, *Once(waits=False).plan(facts)])
    changes, told = placed_by_itself(facts, changes, options.of_lifted)
    plan = "definitions" if changes or defines(facts) else "none"
    text = apply(facts, changes)
    text, placed = _placed_batches(text, facts, changes) if options.of_lifted else (text, [])
    more = [ON_DEVICE] if placed else []
    more += [HANDLE] if f"{imported_as(facts, HANDLE)}.shared()" in text else []
    text = with_names(text, facts.text.text, *(as_import(n, imported_as(facts, n)) for n in more))
    notes = [*seen(facts, changes, options.wants), *told]
    if options.of_lifted:
        once = Once(waits=False)
        asked = [*once.each_answers(facts), *once.each_writes(facts)] if options.wants(Once.code) else ()
        notes = [*notes, *asked]
    elif is_script:
        notes = [*notes, *_unplaced(facts, changes)]
    notes += _trained_by_each(facts) if is_script or facts.untrained else ()
    edits = [c.edit for c in changes if c.told] + placed
    if alone and RUNTIME not in text:
        edits = [replace(e, message=e.message.replace(WHY, ON_CPU)) for e in edits]
    return Result(text, plan, edits, notes)


def _trained_by_each(facts: Facts) -> Iterator[Note]:
    """Where gradients are taken by torch.autograd.grad() alone, the optimizer's step."""
    calls = [c for c in facts.calls_of("step") if isinstance(c.func, ast.Attribute)]
    steps = [c for c in calls if OPTIMIZER_NAME.search(last_part(c.func.value) or "")]  # type: ignore[attr-defined]
    if steps and steps_without_backward(facts):
        line, column, _, _ = facts.text.key(steps[0])
        says = "no backward() shows the runtime its gradients: every process trains by itself, on every batch"
        yield Note(line, column + 1, "PTM703", f"`{facts.short(steps[0])}`: {says}")


def _unplaced(facts: Facts, changes: list[Change]) -> Iterator[Note]:
    """What a script that only evaluates moved itself: no Trainer comes after it."""
    words = ("eval", "no_grad", "inference_mode")
    asks = any(isinstance(facts.scopes.parents.get(a), ast.Call) for w in words for a in facts.attributes.get(w, ()))
    if not asks or facts.is_library or facts.classes.run_by_trainer:
        return
    for c in changes:
        own = not any(isinstance(up, ast.ClassDef) for up in facts.scopes.ancestors(c.node))
        if own and c.edit.code == "PTM101":
            says = "nothing here trains, so that nothing places it: it stays on the CPU, where it is not moved to"
            yield Note(c.edit.line, c.edit.column, c.edit.code, f"{says} `Runtime.shared().device`")
            return


def _placed_batches(text: str, original: Facts, changes: list[Change]) -> tuple[str, list[Edit]]:
    """A module of a lifted script, whose loops over loaders moved their batches, or evaluate a model that has moved."""
    moving = moving_batches(original, changes)
    if not moving and EVALUATES not in original.loops.hot_loops.values():
        return text, []
    after = facts_of(text)
    line = line_map(text, original.text.text)
    edits = Edits(after)
    placed = place_batches(after, edits, moving, line)
    return edits.done(), placed


def with_names(text: str, before: str, *more: str) -> str:
    """The text with what it reads of the runtime imported, where nothing in it has the name yet."""
    made = facts_of(text) if text != before and any(n in text for n in NAMES) else None
    names = [n for n in names_read(made) if made.scopes.module.lookup(n.split()[-1]) is None] if made else []
    names += more
    return add_imports(text, RUNTIME, names) if names else text


def defines(facts: Facts) -> bool:
    """Whether the file defines modules or data sets."""
    for c in facts.walk(ast.ClassDef):
        for base in c.bases:
            full = facts.names.resolve(base) or ""
            if full.startswith("torch."):
                return True
    return False

"""A loop that is kept as it is written, on Runtime."""

from __future__ import annotations

import ast

from .codemods.base import apply
from .codemods.every import outermost, plan_all, seen
from .codemods.keep_loop import KeepLoop
from .codemods.once import Once, names_read
from .facts.of_inputs import is_of_inputs
from .facts.runtime_names import RUNTIME, as_import, imported_as
from .facts.script import Facts, facts_of
from .facts.trains import trains
from .lift.imports import import_edit
from .lift.placing import draws_batches
from .lift.recipe import CannotLift
from .report import Note
from .result import Options, Result
from .selection import stay_in_loop


def kept_loop(facts: Facts, options: Options, attention: list[Note]) -> Result:
    """The loop as it is written, on Runtime: each process computes every batch whole."""
    name = "runtime"
    while any(name in s.stores or name in s.params for s in facts.scopes.by_node.values()):
        name = f"pt_{name}"
    on_runtime = options.wants(KeepLoop.code)
    facts.handle = name if on_runtime else None
    keep = list(KeepLoop(name).plan(facts)) if on_runtime else []
    once = list(Once(alike=True).plan(facts)) if options.wants(Once.code) else []
    changes = outermost(facts, [*plan_all(facts, options.wants, kept=True), *keep, *once])
    attention = [*attention, *seen(facts, changes, options.wants)]
    text = apply(facts, changes)
    kept = facts_of(text)
    names = names_read(kept)
    reads = any(n.id == name for n in kept.walk(ast.Name))
    if reads or names:
        handle = imported_as(kept, "Runtime")
        after = f"{name} = {handle}.shared()" if reads else ""
        given = [as_import("Runtime", handle), *names] if reads else names
        at, _, new = import_edit(kept.tree, kept.text, RUNTIME, given, after)
        text = text[:at] + new + text[at:]
    attention = [*attention, *stay_in_loop(facts, options)]
    first = next((c.edit for c in keep), None) if trains(facts) else None
    if first is not None and not _attacks_for_others(facts):
        says = "every process computes every batch whole: a kept loop's data is not divided over processes"
        attention = [*attention, Note(first.line, first.column, "PTM703", says)]
    return Result(text, "loop", [c.edit for c in changes if c.told], attention)


def _attacks_for_others(facts: Facts) -> bool:
    """Whether the file has gradients of inputs alone, in functions that others give batches of theirs."""
    of_inputs = all(is_of_inputs(facts, c) for c in facts.calls_of("backward"))
    return facts.is_library and of_inputs and not draws_batches(facts)


def decided(why: CannotLift) -> Note:
    """The line of the original that kept the loop from being lifted."""
    return Note(why.line, getattr(why.node, "col_offset", 0) + 1, "PTM701", f"the loop is kept: {why.reason}")

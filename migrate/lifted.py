"""A script's text with its loop lifted: the edits of the codemods, the lift, and what rank 0 alone does after it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from .codemods.apex_of_loops import ApexOfLoops
from .codemods.base import Change, apply
from .codemods.every import outermost, plan_all, seen
from .codemods.once import Once, imports_in, names_read, renames
from .codemods.precision_of_loops import PrecisionOfLoops
from .codemods.remove_device_calls import RemoveDeviceCalls
from .codemods.remove_unused_devices import RemoveUnusedDevices
from .facts.choice import accelerator, means_another
from .facts.copies import copies_of_weights
from .facts.given_device import given_device
from .facts.hosts import names_no_device
from .facts.kept_copies import kept_copies
from .facts.nodes import walk
from .facts.runtime_names import RUNTIME, as_import, imported_as, runtime_name
from .facts.script import Facts, facts_of
from .facts.views import views_of_weights
from .lift.imports import before_its_uses, import_edit, import_line
from .lift.lightning import to_lightning
from .lift.networks import unchained
from .lift.recipe import CannotLift
from .line_map import line_map
from .report import Edit, Note, at_line
from .result import Options, Result

if TYPE_CHECKING:
    from .lift.placing import Moving

LiftedText = tuple[str, str, list[Edit], list[Note]]  # text, plan, edits, notes
MODULE_NAMES = ("Module", "Trainer")
# what a lift may raise that did not foresee a script: its loop is kept, and that is told
FAULTS = (SyntaxError, LookupError, TypeError, ValueError, AssertionError, AttributeError)


def with_precision(facts: Facts, options: Options) -> Result | None:
    """The lift with autocast and scaler as the Trainer's precision; None where the script has to keep them.

    CannotLift where it cannot be lifted with them either.
    """
    text = facts.text.text
    if not options.wants(PrecisionOfLoops.code) or ("autocast" not in text and "apex" not in text):
        return None
    codemod = PrecisionOfLoops() if "autocast" in text else ApexOfLoops()
    mixed = codemod.changes(facts)
    if mixed is None or codemod.keeps:
        return None
    changes = outermost(facts, mixed[0])
    full = facts.after(apply(facts, changes))
    full.precision = mixed[1]
    line = line_map(full.text.text, facts.text.text)
    try:
        result = lifted(full, options, by_hand=codemod.by_hand)
    except CannotLift as why:
        if why.of_loops:
            why.line = line(why.line)
            raise
        return None
    except FAULTS:
        return None
    result.edits[:] = [*(c.edit for c in changes), *(at_line(e, line) for e in result.edits)]
    result.attention[:] = [at_line(n, line) for n in result.attention]
    result.attention += codemod.told(facts)
    return result


def _copies(facts: Facts, lifted: str) -> list[Note]:
    """What is kept of weights before the Trainer has placed them, and goes nowhere in the lifted text."""
    from .lift.kept_weights import goes_along, holder_of, kept_of_handed

    notes = []
    kept = (n for c in facts.walk(ast.ClassDef) for a, n in kept_copies(facts, c).items() if f".{a}.to(" not in lifted)
    for copy in [*copies_of_weights(facts), *kept]:
        held = holder_of(facts, copy)
        if held is not None and goes_along(lifted, ast.unparse(held[0])):
            continue
        notes.append(_copied_note(facts, copy))
    for call, name, _, (attribute, _) in kept_of_handed(facts):
        if not goes_along(lifted, f"{name}.{attribute}"):
            notes.append(_copied_note(facts, call))
    for view in views_of_weights(facts):
        line, column, _, _ = facts.text.key(view)
        says = f"`{facts.short(view)}`: on a GPU these are the model's weights only until the Trainer places it"
        notes.append(Note(line, column + 1, "PTM105", f"{says}: ask for them when training begins"))
    return notes


class DeviceAtHand(Exception):
    """What chose the accelerator is not known where the Trainer is made, and a device is: it has to stay there."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.source = source


def _copied_note(facts: Facts, copy: ast.expr) -> Note:
    line, column, _, _ = facts.text.key(copy)
    says = f"`{facts.short(copy)}`: a copy of weights that the Trainer has not placed yet stays on the CPU"
    return Note(line, column + 1, "PTM105", f"{says}: on a GPU, make it, or move it, when training begins")


def lifted(facts: Facts, options: Options, by_hand: bool = True) -> Result:
    """The result with the loop lifted; CannotLift where it cannot be, or `by_hand` is False and its steps must be."""
    from .lift.buffered import without_buffers
    from .lift.hopeless import check_hopes
    from .lift.own_device import settled
    from .lift.placing import moving_batches
    from .lift.shape.cut_by_hand import cut_and_moved
    from .lift.uncalled import put_back, taken_out

    if (cut := cut_and_moved(facts)) is not None:
        return _of_cut(facts, cut, options, by_hand)
    check_hopes(facts)
    facts.lifting = True
    changes = plan_all(facts, options.wants)
    facts.lifting = False
    plain = Facts(apply(facts, changes))
    plain.precision, plain.sync_batchnorm, plain.ours = facts.precision, facts.sync_batchnorm, facts.ours
    plain.copies_elsewhere, plain.others, plain.taken = facts.copies_elsewhere, facts.others, facts.taken
    plain.moved_networks = frozenset(_moved_networks(facts, changes))
    line = line_map(plain.text.text, facts.text.text)
    names = [as_import(n, imported_as(plain, n)) for n in MODULE_NAMES]
    own = names if options.framework == "ptmigrate" else ()
    read, stubs = taken_out(plain)
    one = partial(_one, original=facts, options=options, by_hand=by_hand, imports=own)
    try:
        text, plan, more, attention = _each_or_one(read, one)
        text = put_back(text, stubs)
    except CannotLift as why:
        why.line = line(why.line)
        raise
    except DeviceAtHand as found:
        again = facts.after(facts.text.text)
        again.device_given = found.source
        return lifted(again, options, by_hand)
    left = seen(facts, changes, options.wants) + (_copies(facts, text) if options.wants("PTM105") else [])
    made = facts_of(text)
    made.askers_elsewhere, made.others = facts.askers_elsewhere, facts.others
    left = without_buffers(left, facts, text)
    left, more = settled(left, [at_line(e, line) for e in more], made)
    edits = [c.edit for c in changes if c.told] + more
    attention = [at_line(n, line) for n in attention]
    attention += [n for n in left if n.code != "PTM301"]  # the lift logs those
    text, finishing, told = _finished(made, names, facts, options, moving_batches(facts, changes))
    placed = {(e.code, e.line) for e in finishing}
    attention = [n for n in attention if (n.code, n.line) not in placed]
    compiles(text)
    return Result(text, plan, edits + finishing, attention + told, framework=options.framework)


def _of_cut(facts: Facts, cut: str, options: Options, by_hand: bool) -> Result:
    """The lift of a text with a loop over its batches, told by the lines of the script."""
    line = line_map(cut, facts.text.text)
    try:
        result = lifted(facts.after(cut), options, by_hand)
    except CannotLift as why:
        why.line = line(why.line)
        raise
    edits = [at_line(e, line) for e in result.edits]
    return replace(result, edits=edits, attention=[at_line(n, line) for n in result.attention])


def _moved_networks(facts: Facts, changes: list[Change]) -> Iterator[str]:
    """The names of networks of which a move goes: `other = Net().to(device)`, `other.cuda()`."""
    for c in (c for c in changes if c.edit.code == RemoveDeviceCalls.code):
        s = facts.scopes.statement_of(c.node)
        calls = [n for n in walk(c.node, ast.Call) if facts.devices.moved(n) is not None]
        moved = [m for n in calls if (m := facts.devices.moved(n)) is not None and _makes_network(facts, m, n)]
        if not moved:
            continue
        yield from (t.id for t in getattr(s, "targets", ()) if isinstance(t, ast.Name))
        yield from (m.id for m in moved if isinstance(m, ast.Name))


def _makes_network(facts: Facts, moved: ast.expr, call: ast.Call) -> bool:
    if isinstance(moved, ast.Call):
        if facts.names.resolve(moved.func) == "copy.deepcopy" and moved.args:
            return _makes_network(facts, moved.args[0], call)
        return facts.placed.is_module(moved) or facts.placed.becomes_module(call)
    home = facts.scopes.scope_of(moved).lookup(moved.id) if isinstance(moved, ast.Name) else None
    values = facts.devices.assigned(moved.id, home) if isinstance(moved, ast.Name) and home is not None else None
    others = [unchained(v) for v in values or () if call not in walk(v)]
    return bool(others) and all(isinstance(v, ast.Call) and facts.placed.is_module(v) for v in others)


def _each_or_one(plain: Facts, one: Callable[..., LiftedText]) -> LiftedText:
    """The text with each of its trainings lifted; with all as one where there is one, or one of them cannot be."""
    from .lift.several import lift_each

    first: Exception | None = None
    try:
        each = lift_each(plain, partial(one, among=True))
        if each is not None:
            return each
    except (CannotLift, *FAULTS) as why:
        first = why
    try:
        return one(plain)
    except CannotLift as why:
        raise (first if isinstance(first, CannotLift) else why) from None


def _one(
    plain: Facts, among: bool = False, *, original: Facts, options: Options, by_hand: bool, imports: Sequence[str]
) -> LiftedText:
    """A text with its one training lifted. `among`: others wait in it, or were lifted before; it has no imports yet."""
    from .lift.find import outline
    from .lift.lift import lift
    from .lift.own_device import CODE as PLACED
    from .lift.several import apart
    from .lift.shape.shape import shaped

    shape = shaped(plain)
    shape.precision, shape.sync_batchnorm, shape.ours = plain.precision, plain.sync_batchnorm, plain.ours
    shape.without_devices, shape.moved_networks = names_no_device(original), plain.moved_networks
    line = line_map(shape.text.text, plain.text.text)
    try:
        if among:
            apart(shape, outline(shape).epoch_loop)
        placed = options.wants(PLACED)
        chosen = accelerator(original)
        around = shape.scopes.scope_of(outline(shape).epoch_loop).node
        unknown = chosen is not None and means_another(chosen, getattr(around, "name", ""), original)
        text, plan, edits, notes = lift(shape, None if unknown else chosen, placed, by_hand, () if among else imports)
        lost = list(_choice_lost(shape, chosen, text))
        once = bool(lost) and original.device_given is None and isinstance(around, ast.FunctionDef)
        if once and (device := given_device(original, getattr(around, "name", ""))) is not None:
            raise DeviceAtHand(device)
        notes = [*notes, *lost]
    except CannotLift as why:
        why.line = line(getattr(why.node, "lineno", 1))
        raise
    return text, plan, [at_line(e, line) for e in edits], [at_line(n, line) for n in notes]


def _choice_lost(shape: Facts, chosen: str | None, text: str) -> Iterator[Note]:
    """What chose the accelerator in names that are not known where the Trainer is made."""
    from .lift.find import outline

    if chosen is not None and f"accelerator={chosen}" not in text:
        line, column, _, _ = shape.text.key(outline(shape).epoch_loop)
        says = f"`{chosen}` is not known where the Trainer is made, which takes the card that there is: give it"
        yield Note(line, column + 1, RemoveUnusedDevices.code, f"{says} `accelerator=` there")


def _finished(
    lifted: Facts, names: list[str], original: Facts, options: Options, moving: Moving
) -> tuple[str, list[Edit], list[Note]]:
    """A lifted text with its imports, what rank 0 alone does, and loops that stay on the device; edits told of it.

    `moving`: what in the original moved its batches itself.
    """
    from .lift.before_training import CODE as EVALUATED
    from .lift.before_training import evaluated_before
    from .lift.kept_tensors import place_kept
    from .lift.loaders import BATCHES
    from .lift.placing import NAME as ON_DEVICE
    from .lift.placing import evaluations, place_batches
    from .lift.shape.edits import Edits
    from .lift.shape.parameters import give_names_back

    on_lightning = options.framework == "lightning"
    once = list(Once(not on_lightning).plan(lifted)) if options.wants(Once.code) else []
    line = line_map(lifted.text.text, original.text.text)
    races = [at_line(n, line) for n in Once().notes(lifted)] if options.wants(Once.code) else []
    told = [at_line(c.edit, line) for c in once]
    renamed = renames(lifted, once)
    if renamed is None:
        lifted, renamed = Facts(apply(lifted, once)), []
        lifted.others = original.others
        line = line_map(lifted.text.text, original.text.text)
    edits = Edits(lifted, renamed)
    read = names_read(lifted)
    has_batches = BATCHES in lifted.text.text and any(runtime_name(lifted, n) == BATCHES for n in lifted.walk(ast.Name))
    names += [BATCHES] if has_batches else []
    names = [*names, *read, *(n for n in imports_in(e[2] for e in renamed) if n not in read)]
    if on_lightning:
        text, notes = _on_lightning(edits.done(), names, original)
        return text, told, [*notes, *races]
    placed = place_batches(lifted, edits, moving, line)
    if options.wants(EVALUATED) and not names_no_device(original):
        races += evaluated_before(lifted, evaluations(lifted) if placed and moving else [], line)
    names = [*names, as_import(ON_DEVICE, imported_as(lifted, ON_DEVICE))] if placed else names
    placed += place_kept(lifted, edits, line)
    give_names_back(lifted, edits, original)
    there = next((s for s in lifted.walk(ast.ImportFrom) if s.module == RUNTIME), None)
    if there is None:
        edits.replace(*import_edit(lifted.tree, lifted.text, RUNTIME, names))
    elif len(names) > len(there.names):
        edits.replace_node(there, import_line(RUNTIME, names))
    return before_its_uses(edits.done(), RUNTIME), placed + told, races


def _on_lightning(text: str, names: list[str], original: Facts) -> tuple[str, list[Note]]:
    try:
        new, notes = to_lightning(text, names)
    except CannotLift as why:
        why.line = line_map(text, original.text.text)(why.line)
        raise
    line = line_map(new, original.text.text)
    return new, [at_line(n, line) for n in notes]


def compiles(text: str) -> None:
    """SyntaxError where a text parses and yet is no program: a `continue` outside a loop, a `return` in a class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the original's own, such as invalid escapes
        compile(text, "<result>", "exec", dont_inherit=True)

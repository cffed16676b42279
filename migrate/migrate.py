"""One file from text to text: facts, plan, edits."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from . import seeds_by_rank
from .codemods.amp_in_modules import AmpInModules
from .codemods.base import Change, Codemod, NotFound, apply
from .codemods.every import BY_CODE, outermost, plan_all, seen
from .codemods.inline_movers import InlineMovers
from .codemods.keep_loop import KeepLoop
from .codemods.left_cuda import TOLD, LeftCuda
from .codemods.mend_async import mend
from .codemods.next_of_iterators import NextOfIterators
from .codemods.old_idioms import DataZero
from .codemods.once import NAMES, Once, names_read
from .codemods.placed_by_itself import HANDLE, placed_by_itself
from .codemods.places_itself import places_itself
from .codemods.plain_branches import PlainBranches
from .codemods.sampler_pairs import SamplerPairs
from .codemods.split_steps import SplitSteps
from .codemods.synced_norms import told as told_norms
from .collection import uncollected
from .elsewhere import Elsewhere
from .facts.distribution import GATHERS, distribution_of, mentions_processes
from .facts.environment import ASKS
from .facts.loops import EVALUATES
from .facts.nodes import walk
from .facts.refusals import carrier, refusal
from .facts.runtime_names import RUNTIME, as_import, imported_as, runtime_name
from .facts.script import Facts, facts_of
from .facts.source import parses
from .facts.synced_norms import asked
from .left_over import left_over
from .lift.draws import drawn_for_others
from .lift.imports import add_imports, import_edit
from .lift.lightning import lost
from .lift.placing import NAME as ON_DEVICE
from .lift.placing import moving_batches, place_batches
from .lift.recipe import LIFTED_FROM, CannotLift
from .lift.shape.edits import Edits
from .lifted import FAULTS, lifted, with_precision
from .line_map import line_map
from .report import Edit, Note
from .result import Options, Result
from .sources import unfollowed
from .turns import in_turns
from .unread_devices import still_read, without_unread_devices
from .unread_imports import without_unread_imports
from .unread_parameters import without_unread_parameters
from .unread_starts import without_unread_starts

# what others do with `.item()` they do with `.data[0]`, and with a sampler of two what they do with one
FIRST: tuple[tuple[type[Codemod], str], ...] = (
    (DataZero, "data"),
    (NextOfIterators, ".next()"),
    (SamplerPairs, "DistributedSampler"),
)

OWN_MOVER = re.compile(r"def (to|cuda)\(")  # of a class of the script
DRAWN = "PTM414"  # a split that each process draws


def migrate_text(
    text: str,
    options: Options | None = None,
    is_script: bool = True,
    kept: bool = False,
    elsewhere: Elsewhere | None = None,
) -> Result:
    """Migrate one file. `is_script` is False for modules that a script imports: their loops are not lifted.

    `kept`: a loop that stands in another file of the project is kept, and trains what this file makes and places.

    Raises SyntaxError when the text does not parse.
    """
    options = options or Options()
    if not has_work(text, options, elsewhere):
        return Result(text, "none")
    with uncollected():
        return _migrated(text, options, is_script, kept, elsewhere)


def has_work(text: str, options: Options, elsewhere: Elsewhere | None) -> bool:
    """Whether a file is to be parsed at all: for torch's sake, or as it may ask for what a launcher sets."""
    if "torch" in text or options.of_lifted or (elsewhere is not None and elsewhere.trains):
        return True
    return elsewhere is not None and elsewhere.by_hand and ASKS.search(text) is not None and parses(text)


def _migrated(text: str, options: Options, is_script: bool, kept: bool, elsewhere: Elsewhere | None) -> Result:
    facts, mended, first, seen_first = _mended(text, options)
    facts.cuda_asked = options.wants(LeftCuda.code)
    facts.checkpoint, facts.ours = frozenset(options.checkpoint), options.framework == "ptmigrate"
    if elsewhere is not None:
        _know(facts, elsewhere)
    if already_migrated(facts):
        return _with_left_over(Result(text, "none"), facts, options)
    _know_norms(facts)
    left = _left_alone(facts, text, is_script)
    if left is not None:
        return _with_left_over(left, facts, options)
    if options.framework == "lightning":
        options = replace(options, ignore=(*options.ignore, SplitSteps.code))  # Lightning has no *_step_end
    try:
        original = facts
        facts, branches, notes = _plain(original, options)
        if facts is original and not notes:
            facts, branches, notes = _without_autocast(original, options)
        stuck = _talks_otherwise(facts, original, options) if is_script else None
        if stuck is not None:
            return _with_left_over(Result(text, "refused", [], [stuck]), original, options)
        result = _planned(facts, options, is_script, kept)
        if facts is not original and result.plan in ("none", "definitions"):
            result.text = _with_names(result.text, mended)  # what its branches of one process ask
        if facts.waiting:
            _move_functions(result, facts)
        if branches or notes:
            back = line_map(facts.text.text, mended)
            result.edits[:] = [*branches, *(replace(e, line=back(e.line)) for e in result.edits)]
            result.attention[:] = [*notes, *(replace(n, line=back(n.line)) for n in result.attention)]
        result.edits[:0], result.attention[:0] = first, seen_first
        if result.plan == "none" and result.edits:
            result.plan = "definitions"
        if options.framework == "lightning":
            result.attention += lost(facts, result.plan)
        result.attention += seeds_by_rank.told(original, result.attention)
        result.attention += told_norms(original, result.text, result.plan)
        if is_script and result.edits:
            result.attention += _unfollowed(original)
        after = original if result.text == mended else facts_of(result.text)
        after = _without_unread(result, original, after, options, is_script)
        after = _where_cuda_is(result, original, after, text, options, is_script)
        _without_imports(result, original, after, options, is_script)
        line = (lambda n: n) if after.text.text == text else line_map(after.text.text, text)
        itself = is_script and result.plan in ("none", "definitions") and not (options.of_lifted or original.by_hand)
        result.attention += left_over(after, result.attention, line, _still_wanted(options), itself)
        if result.plan in ("module", "manual") and OWN_MOVER.search(text):
            from .lift.own_movers import without_moved

            result.attention[:] = without_moved(original, result.attention, result.text)
        return result
    except NotFound as missing:
        notes = [Note(e.line, e.column, e.code, f"the file is left as it is: {e.message}") for e in missing.edits]
        return _with_left_over(Result(text, "refused", [], notes), Facts(text), options)


def _mended(text: str, options: Options) -> tuple[Facts, str, list[Edit], list[Note]]:
    """The file with what all others are to find in today's form: each on the line that it had."""
    mended, told = mend(text)
    facts, notes = Facts(mended), list[Note]()
    for kind, word in FIRST:
        codemod = kind()
        changes = list(codemod.plan(facts)) if options.wants(kind.code) and word in mended else []
        notes += codemod.notes(facts) if options.wants(kind.code) and word in mended else ()
        if changes:
            mended = apply(facts, changes)
            facts, told = Facts(mended), [*told, *(c.edit for c in changes)]
    return facts, mended, told, notes


def _without_unread(result: Result, original: Facts, after: Facts, options: Options, is_script: bool) -> Facts:
    """Takes from the result what nothing reads any more, but for imports; the facts of it."""
    if result.plan in ("module", "manual") and options.wants("PTM102"):
        after, parameters = without_unread_parameters(original, after) if original.by_hand else (after, [])
        after, starts, told = without_unread_starts(original, after) if original.by_hand else (after, [], [])
        after, removed = without_unread_devices(original, after)
        removed, result.attention[:] = [*parameters, *starts, *removed], [*result.attention, *told]
        result.text, result.edits = after.text.text, result.edits + removed
        result.attention[:] = still_read(result.attention, after, removed)
    return after


def _without_imports(result: Result, original: Facts, after: Facts, options: Options, is_script: bool) -> None:
    """Takes from the result, last, the imports that nothing reads any more."""
    library = not is_script or original.is_library
    if options.wants("PTM690") and (original.taken is not None or not library):
        result.text, removed = without_unread_imports(original, after, original.taken if library else None)
        result.edits += removed


def _where_cuda_is(
    result: Result, original: Facts, after: Facts, text: str, options: Options, is_script: bool
) -> Facts:
    """What the result still moves goes where there is a card; the facts of it."""
    after.others = original.others
    unplaced = is_script and result.plan == "definitions" and _stay_unplaced(result, original)
    changes = outermost(after, list(LeftCuda(unplaced).plan(after))) if options.wants(LeftCuda.code) else []
    if not changes:
        return after
    line = (lambda n: n) if after.text.text == text else line_map(after.text.text, text)
    edits = [replace(c.edit, line=line(c.edit.line)) for c in changes]
    lines = {e.line for e in edits}
    result.edits += edits
    result.attention[:] = [n for n in result.attention if n.line not in lines or not n.message.endswith(TOLD)]
    result.text = apply(after, changes)
    result.plan = "definitions" if result.plan == "none" else result.plan
    return facts_of(result.text)


def _still_wanted(options: Options) -> Callable[[str], bool]:
    """What is still asked of a file: on the runtime one draw before the processes meet is every process's."""
    on_runtime = options.of_lifted and options.framework == "ptmigrate"
    return lambda code: options.wants(code) and not (on_runtime and code == DRAWN)


def _stay_unplaced(result: Result, original: Facts) -> bool:
    """Whether the moves of networks went from a script that trains nothing, and that no other file imports."""
    others = original.is_library or original.imported or original.classes.run_by_trainer
    return not others and any(e.code == "PTM101" for e in result.edits)


def _unfollowed(facts: Facts) -> Iterator[Note]:
    """Modules that the script imports by a name that does not show: they keep their device calls, where it has none."""
    for call in facts.walk(ast.Call):
        if unfollowed(call):
            line, column, _, _ = facts.text.key(call)
            says = f"`{facts.short(call)}`: which file that is does not show: migrate it too, its device calls stay"
            yield Note(line, column + 1, "PTM101", says)


def what_is_there(text: str, options: Options) -> list[Note]:
    """What is told of a file that stays as it is; nothing where it does not parse."""
    try:
        return left_over(Facts(mend(text)[0]), [], lambda n: n, options.wants)
    except SyntaxError:
        return []


def _with_left_over(result: Result, facts: Facts, options: Options) -> Result:
    """A file that stays as it is, with all that is in it told."""
    result.attention += left_over(facts, result.attention, lambda n: n, options.wants)
    return result


def _left_alone(facts: Facts, text: str, is_script: bool) -> Result | None:
    """A script that nothing here can carry, or that another library carries already."""
    why = refusal(facts) if is_script or _trains(facts) else None
    if why is not None:
        line, column, _, _ = facts.text.key(why.node)
        return Result(text, "refused", [], [Note(line, column + 1, "PTM704", f"refused: {why.reason}")])
    library = carrier(facts)
    if library is not None:
        return Result(text, "none", reason=f"{library} carries its loop already")
    return None


def _know(facts: Facts, elsewhere: Elsewhere) -> None:
    """What other files of the project say of processes."""
    facts.by_hand, facts.elsewhere = elsewhere.by_hand, elsewhere.values
    facts.samplers_gone, facts.samplers_kept = elsewhere.samplers, elsewhere.samplers_kept
    facts.guarded_elsewhere, facts.called_elsewhere = elsewhere.guarded, elsewhere.called
    facts.awaited_elsewhere, facts.together_elsewhere = elsewhere.awaited, elsewhere.together
    facts.apart_elsewhere = elsewhere.apart
    facts.given_wrapped = elsewhere.given_wrapped
    facts.askers_elsewhere, facts.imported = elsewhere.askers, elsewhere.imported
    facts.given_made_elsewhere = elsewhere.given_made
    facts.movers_elsewhere, facts.copies_elsewhere = elsewhere.movers, elsewhere.copies
    facts.others, facts.untrained = elsewhere.others, elsewhere.untrained
    facts.wrapped = frozenset(name for name in elsewhere.wrapped if name.endswith("()"))
    facts.read_elsewhere, facts.defined_elsewhere = elsewhere.reads, elsewhere.defines
    facts.handed_elsewhere = elsewhere.handed
    facts.taken = elsewhere.taken


def _know_norms(facts: Facts) -> None:
    """When batch norm is to be synchronised, and which options the Trainer will read for it."""
    facts.sync_batchnorm = asked(facts)
    if facts.sync_batchnorm is not None:
        condition = ast.parse(facts.sync_batchnorm, mode="eval")
        facts.read_elsewhere |= {n.attr for n in walk(condition, ast.Attribute)}


def _plain(facts: Facts, options: Options) -> tuple[Facts, list[Edit], list[Note]]:
    """The script with the branches of one process alone, where it starts and connects its processes by hand."""
    if not (options.wants(PlainBranches.code) and (facts.by_hand or mentions_processes(facts.text.text))):
        return facts, [], []
    found = distribution_of(facts)
    facts.by_hand, facts.wrapped = found.by_hand, frozenset(found.wrapped_names)
    if not facts.by_hand:
        return facts, [], []
    turned, turns, untold = in_turns(facts)
    branches = PlainBranches(asked=turned is not facts)
    changes = outermost(turned, list(branches.plan(turned)))
    line = line_map(turned.text.text, facts.text.text)
    notes = [*untold, *(replace(n, line=line(n.line)) for n in branches.notes(turned))]
    if not changes:
        return turned, turns, notes
    plain = turned.after(apply(turned, changes))
    return plain, [*turns, *(replace(c.edit, line=line(c.edit.line)) for c in changes if c.told)], notes


def _without_autocast(facts: Facts, options: Options) -> tuple[Facts, list[Edit], list[Note]]:
    """Without the autocast that is the Trainer's, where a step is cut in its block: the model is called there, too."""
    kinds = AmpInModules, SplitSteps
    if "autocast" not in facts.text.text or not all(options.wants(kind.code) for kind in kinds):
        return facts, [], []
    if not (facts.classes.run_by_trainer and SplitSteps().within_autocast(facts)):
        return facts, [], []
    amp = AmpInModules()
    changes = outermost(facts, list(amp.plan(facts)))
    if not changes:
        return facts, [], []
    return facts.after(apply(facts, changes)), [c.edit for c in changes if c.told], list(amp.notes(facts))


def _talks_otherwise(facts: Facts, original: Facts, options: Options) -> Note | None:
    """Where processes talk in a way that one process alone has no form of: half of such a script is no program."""
    call = next(distribution_of(facts).blocking(), None)
    if call is None or not (facts.by_hand or _gathers_as_one_of_several(facts, options)):
        return None
    line, column, _, _ = facts.text.key(call)
    line = line if facts is original else line_map(facts.text.text, original.text.text)(line)
    says = f"refused: `{facts.short(call)}`: processes talk there in a way that one process has no form of; write it"
    return Note(line, column + 1, "PTM704", f"{says} for one device")


def _gathers_as_one_of_several(facts: Facts, options: Options) -> bool:
    """Whether a script gathers from its peers, whoever connects it to them, where a plain one comes too."""
    if facts.is_library or facts.classes.run_by_trainer or not options.wants(PlainBranches.code):
        return False
    changes = outermost(facts, list(PlainBranches().plan(facts)))
    found = distribution_of(facts.after(apply(facts, changes)) if changes else facts)
    return any(found.full[call] in GATHERS for call in found.blocking())


def _planned(facts: Facts, options: Options, is_script: bool, kept: bool) -> Result:
    wanted = options.wants(InlineMovers.code) and not kept
    changes = list(InlineMovers().plan(facts)) if wanted else []
    if changes:
        moved = facts.after(apply(facts, changes))
        result = _by_plan(moved, options, is_script, kept)
        if result.plan != "loop":  # there the function places what it is given, as it did
            line = line_map(moved.text.text, facts.text.text)
            result.edits[:] = [*(c.edit for c in changes), *(replace(e, line=line(e.line)) for e in result.edits)]
            result.attention[:] = [replace(n, line=line(n.line)) for n in result.attention]
            return result
    return _by_plan(facts, options, is_script, kept)


def _by_plan(facts: Facts, options: Options, is_script: bool, kept: bool) -> Result:
    trains = _trains(facts) and not facts.classes.run_by_trainer  # there the Trainer has the loop
    if trains and is_script and options.plan != "loop" and options.wants("PTM700"):
        try:
            return with_precision(facts, options) or lifted(facts, options)
        except CannotLift as why:
            return _kept(facts, options, [] if why.node is None else [_decided(why)])
        except FAULTS as fault:
            says = f"the loop is kept: lifting it failed ({type(fault).__name__}: {fault})"
            return _kept(facts, options, [Note(1, 1, "PTM701", says)])
    if trains:
        return _kept(facts, options, [])
    if kept and not facts.classes.run_by_trainer:
        result = _kept(facts, options, [])
        result.plan = "loop" if is_script else "definitions" if result.edits or _defines(facts) else "none"
        return result
    changes = plan_all(facts, options.wants)
    if (is_script or facts.untrained) and not options.of_lifted:
        changes = places_itself(facts, changes, options.wants)
    if options.of_lifted and options.wants(Once.code):
        changes = outermost(facts, [*changes, *Once(waits=False).plan(facts)])
    changes, told = placed_by_itself(facts, changes, options.of_lifted)
    plan = "definitions" if changes or _defines(facts) else "none"
    text = apply(facts, changes)
    text, placed = _placed_batches(text, facts, changes) if options.of_lifted else (text, [])
    more = [ON_DEVICE] if placed else []
    more += [HANDLE] if f"{imported_as(facts, HANDLE)}.shared()" in text else []
    text = _with_names(text, facts.text.text, *(as_import(n, imported_as(facts, n)) for n in more))
    notes = [*seen(facts, changes, options.wants), *told]
    if options.of_lifted:
        once = Once(waits=False)
        asked = [*once.each_answers(facts), *once.each_writes(facts)] if options.wants(Once.code) else ()
        notes = [*notes, *drawn_for_others(facts), *asked]
    elif is_script:
        notes = [*notes, *_unplaced(facts, changes)]
    return Result(text, plan, [c.edit for c in changes if c.told] + placed, notes)


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


def _move_functions(result: Result, original: Facts) -> None:
    """What pickling meets goes to the module now, as what else changed in it has left it."""
    after = facts_of(result.text)
    kinds = [BY_CODE[code]() for code in sorted(original.waiting)]
    changes = outermost(after, [c for kind in kinds for c in kind.plan(after)])
    result.text = apply(after, changes)
    line = line_map(after.text.text, original.text.text)
    result.edits += [replace(c.edit, line=line(c.edit.line)) for c in changes]
    told = {(n.line, n.code) for n in result.attention}
    left = [replace(n, line=line(n.line)) for kind in kinds for n in kind.notes(after)]
    result.attention += [n for n in left if (n.line, n.code) not in told]


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


def _with_names(text: str, before: str, *more: str) -> str:
    """The text with what it reads of the runtime imported, where nothing in it has the name yet."""
    made = facts_of(text) if text != before and any(n in text for n in NAMES) else None
    names = [n for n in names_read(made) if made.scopes.module.lookup(n.split()[-1]) is None] if made else []
    names += more
    return add_imports(text, RUNTIME, names) if names else text


def _trains(facts: Facts) -> bool:
    return any(
        isinstance(c.func, ast.Attribute) and c.func.attr == "backward" and not _in_autograd_function(facts, c)
        for c in facts.walk(ast.Call)
    )


def _in_autograd_function(facts: Facts, node: ast.AST) -> bool:
    return any(
        isinstance(up, ast.ClassDef) and any(facts.names.resolve(b) == "torch.autograd.Function" for b in up.bases)
        for up in facts.scopes.ancestors(node)
    )


def _kept(facts: Facts, options: Options, attention: list[Note]) -> Result:
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
    first = next((c.edit for c in keep), None) if _trains(facts) else None
    if first is not None:
        says = "every process computes every batch whole: a kept loop's data is not divided over processes"
        attention = [*attention, Note(first.line, first.column, "PTM703", says)]
    return Result(text, "loop", [c.edit for c in changes if c.told], attention)


def _decided(why: CannotLift) -> Note:
    """The line of the original that kept the loop from being lifted."""
    return Note(why.line, getattr(why.node, "col_offset", 0) + 1, "PTM701", f"the loop is kept: {why.reason}")


def already_migrated(facts: Facts) -> bool:
    """The file imports the runtime, or has a class that a loop was lifted to (for Lightning it has no such import).

    A Module that somebody wrote for the runtime is one of its own steps, and looked at as those of Lightning are.
    """
    if any(s.module == RUNTIME for s in facts.walk(ast.ImportFrom)):
        own = any(_is_own_module(facts, c) for c in facts.walk(ast.ClassDef)) if "_step(" in facts.text.text else False
        return not own
    trained = facts.classes.run_by_trainer if LIFTED_FROM in facts.text.text else ()
    return any((ast.get_docstring(c) or "").startswith(LIFTED_FROM) for c in trained)


def _is_own_module(facts: Facts, c: ast.ClassDef) -> bool:
    """A Module of the runtime that no loop was lifted to."""
    derives = any(facts.names.resolve(b) == f"{RUNTIME}.Module" or runtime_name(facts, b) == "Module" for b in c.bases)
    return derives and not (ast.get_docstring(c) or "").startswith(LIFTED_FROM)


def _defines(facts: Facts) -> bool:
    """Whether the file defines modules or data sets."""
    for c in facts.walk(ast.ClassDef):
        for base in c.bases:
            full = facts.names.resolve(base) or ""
            if full.startswith("torch."):
                return True
    return False

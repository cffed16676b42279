"""One file from text to text: facts, plan, edits."""

from __future__ import annotations

import ast
from dataclasses import replace

from .after_edits import completed, move_functions
from .already import already_migrated
from .codemods.base import Change, Codemod, NotFound, apply
from .codemods.every import outermost
from .codemods.inline_movers import InlineMovers
from .codemods.left_cuda import LeftCuda
from .codemods.mend_async import mend
from .codemods.moving_loaders import MovingLoaders
from .codemods.next_of_iterators import NextOfIterators
from .codemods.old_idioms import DataZero
from .codemods.sampler_pairs import SamplerPairs
from .codemods.split_steps import SplitSteps
from .collection import uncollected
from .elsewhere import Elsewhere
from .facts.environment import ASKS
from .facts.nodes import walk
from .facts.refusals import carrier, refusal
from .facts.script import Facts
from .facts.source import parses
from .facts.synced_norms import asked
from .facts.trains import trains
from .kept import decided, kept_loop
from .left_over import left_over
from .lift.recipe import CannotLift
from .lifted import FAULTS, lifted, with_precision
from .line_map import line_map
from .one_process import hides_training, of_one_process, talks_otherwise, without_autocast
from .report import Edit, Note, at_line
from .result import Options, Result
from .unlifted import defines, with_names, without_loop

# what others do with `.item()` they do with `.data[0]`, and with a sampler of two what they do with one
FIRST: tuple[tuple[type[Codemod], str], ...] = (
    (DataZero, "data"),
    (NextOfIterators, ".next()"),
    (SamplerPairs, "DistributedSampler"),
)


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
    original = facts
    try:
        facts, branches, notes = of_one_process(original, options)
        if facts is original and not notes:
            facts, branches, notes = without_autocast(original, options)
        stuck = talks_otherwise(facts, original, options) if is_script else None
        if stuck is not None and elsewhere is not None and elsewhere.by_hand and original.is_library:
            # what others start is theirs, and gone when they are migrated: by itself it talks as a library does
            return _migrated(text, options, is_script, kept, replace(elsewhere, by_hand=False))
        stuck = stuck or (hides_training(facts) if is_script else None)
        if stuck is not None:
            return _with_left_over(Result(text, "refused", [], [stuck]), original, options)
        result = _planned(facts, options, is_script, kept)
        if facts is not original and result.plan in ("none", "definitions"):
            result.text = with_names(result.text, mended)  # what its branches of one process ask
        if facts.waiting:
            move_functions(result, facts)
        back = line_map(facts.text.text, mended) if branches or notes else lambda n: n
        result.edits[:] = [*first, *branches, *(at_line(e, back) for e in result.edits)]
        result.attention[:] = [*seen_first, *notes, *(at_line(n, back) for n in result.attention)]
        return completed(result, original, text, mended, options, is_script)
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
    why = refusal(facts) if is_script or trains(facts) else None
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
    facts.states_read = elsewhere.states_read
    facts.wrapped = frozenset(name for name in elsewhere.wrapped if name.endswith("()"))
    facts.read_elsewhere, facts.defined_elsewhere = elsewhere.reads, elsewhere.defines
    facts.handed_elsewhere = elsewhere.handed
    facts.taken, facts.beside = elsewhere.taken, elsewhere.beside


def _know_norms(facts: Facts) -> None:
    """When batch norm is to be synchronised, and which options the Trainer will read for it."""
    facts.sync_batchnorm = asked(facts)
    if facts.sync_batchnorm is not None:
        condition = ast.parse(facts.sync_batchnorm, mode="eval")
        facts.read_elsewhere |= {n.attr for n in walk(condition, ast.Attribute)}


def _planned(facts: Facts, options: Options, is_script: bool, kept: bool) -> Result:
    wanted = options.wants(InlineMovers.code) and not kept
    changes = list(InlineMovers().plan(facts)) if wanted else []
    loaders = list(MovingLoaders().plan(facts)) if wanted and is_script and trains(facts) else []
    if loaders:
        result = _without_own(facts, outermost(facts, [*loaders, *changes]), options, is_script, kept)
        if result.plan in ("module", "manual"):
            return result
    if changes:
        result = _without_own(facts, changes, options, is_script, kept)
        if result.plan != "loop":  # there the function places what it is given, as it did
            return result
    return _by_plan(facts, options, is_script, kept)


def _without_own(facts: Facts, changes: list[Change], options: Options, is_script: bool, kept: bool) -> Result:
    """What becomes of the file where the script's own movers are gone."""
    moved = facts.after(apply(facts, changes))
    result = _by_plan(moved, options, is_script, kept)
    line = line_map(moved.text.text, facts.text.text)
    result.edits[:] = [*(c.edit for c in changes), *(at_line(e, line) for e in result.edits)]
    result.attention[:] = [at_line(n, line) for n in result.attention]
    return result


def _by_plan(facts: Facts, options: Options, is_script: bool, kept: bool) -> Result:
    by_hand = trains(facts) and not facts.classes.run_by_trainer  # there the Trainer has the loop
    if by_hand and is_script and options.plan != "loop" and options.wants("PTM700"):
        try:
            return with_precision(facts, options) or lifted(facts, options)
        except CannotLift as why:
            return kept_loop(facts, options, [] if why.node is None else [decided(why)])
        except FAULTS as fault:
            says = f"the loop is kept: lifting it failed ({type(fault).__name__}: {fault})"
            return kept_loop(facts, options, [Note(1, 1, "PTM701", says)])
    if by_hand:
        return kept_loop(facts, options, [])
    if kept and not facts.classes.run_by_trainer:
        result = kept_loop(facts, options, [])
        result.plan = "loop" if is_script else "definitions" if result.edits or defines(facts) else "none"
        return result
    return without_loop(facts, options, is_script)

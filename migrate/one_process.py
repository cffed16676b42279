"""What a script is made of before anything else: the form of one process, without branches of several."""

from __future__ import annotations

from .codemods.amp_in_modules import AmpInModules
from .codemods.base import apply
from .codemods.every import outermost
from .codemods.plain_branches import PlainBranches
from .codemods.split_steps import SplitSteps
from .facts.distribution import GATHERS, distribution_of, mentions_processes
from .facts.out_of_sight import trained_out_of_sight
from .facts.script import Facts
from .line_map import line_map
from .report import Edit, Note, at_line
from .result import Options
from .turns import in_turns


def of_one_process(facts: Facts, options: Options) -> tuple[Facts, list[Edit], list[Note]]:
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
    notes = [*untold, *(at_line(n, line) for n in branches.notes(turned))]
    if not changes:
        return turned, turns, notes
    plain = turned.after(apply(turned, changes))
    return plain, [*turns, *(at_line(c.edit, line) for c in changes if c.told)], notes


def without_autocast(facts: Facts, options: Options) -> tuple[Facts, list[Edit], list[Note]]:
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


def hides_training(facts: Facts) -> Note | None:
    """Where processes are started here in which a library trains: a plain script would train in each of them alone."""
    call = trained_out_of_sight(facts) if facts.by_hand and not facts.is_library else None
    if call is None:
        return None
    says = f"refused: no backward() in these files: `{call}` trains, which does not show the runtime its gradients"
    return Note(1, 1, "PTM704", f"{says}; write the step with loss.backward()")


def talks_otherwise(facts: Facts, original: Facts, options: Options) -> Note | None:
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
    if facts.only_defines or facts.classes.run_by_trainer or not options.wants(PlainBranches.code):
        return False
    changes = outermost(facts, list(PlainBranches().plan(facts)))
    found = distribution_of(facts.after(apply(facts, changes)) if changes else facts)
    return any(found.full.get(call) in GATHERS for call in found.blocking())  # type: ignore[call-overload]

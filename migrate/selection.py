"""What a selection of codes needs besides: edits that hold in a lifted loop alone, where a Trainer places, lift it."""

from __future__ import annotations

from collections.abc import Iterator

from .codemods.every import FIRST_LIFTED, ONLY_LIFTED
from .codemods.precision_of_loops import PrecisionOfLoops
from .facts.script import Facts
from .report import Note
from .result import Options

LIFTS = "PTM700"


def lifts(facts: Facts, options: Options) -> bool:
    """Whether a loop is lifted where it can be: also as edits that were selected hold in a lifted one alone."""
    if options.wants(LIFTS) or any(LIFTS.startswith(i) for i in options.ignore):
        return options.wants(LIFTS)
    kinds = [kind for kind in (*FIRST_LIFTED, *ONLY_LIFTED) if options.wants(kind.code)]
    return any(True for kind in kinds for _ in kind().plan(facts))


def precision_alone(options: Options) -> bool:
    """Whether the Trainer's precision= was selected, which needs one."""
    ignored = any(LIFTS.startswith(i) for i in options.ignore)
    return options.plan != "loop" and options.wants(PrecisionOfLoops.code) and not ignored


def stay_in_loop(facts: Facts, options: Options) -> Iterator[Note]:
    """What was selected, and is not done where the loop is kept."""
    for kind in ONLY_LIFTED if options.select else ():
        first = next(iter(kind().plan(facts)), None) if options.wants(kind.code) else None
        if first is not None:
            line, column, _, _ = facts.text.key(first.node)
            says = "stays, as the loop does: no Trainer places what is in it, and the script does"
            yield Note(line, column + 1, kind.code, f"`{facts.short(first.node)}` {says}")

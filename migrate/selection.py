"""What a selection of codes cannot do alone: edits that hold in a lifted loop, where a Trainer places."""

from __future__ import annotations

from collections.abc import Iterator

from .codemods.every import ONLY_LIFTED
from .facts.script import Facts
from .report import Note
from .result import Options

LIFTS = "PTM700"


def stay_in_loop(facts: Facts, options: Options) -> Iterator[Note]:
    """What was selected, and is not done where the loop is kept."""
    for kind in ONLY_LIFTED if options.select else ():
        first = next(iter(kind().plan(facts)), None) if options.wants(kind.code) else None
        if first is not None:
            line, column, _, _ = facts.text.key(first.node)
            says = "stays, as the loop does: no Trainer places what is in it, and the script does"
            more = "" if options.wants(LIFTS) or options.plan == "loop" else f"; {LIFTS}, selected too, lifts the loop"
            yield Note(line, column + 1, kind.code, f"`{facts.short(first.node)}` {says}{more}")

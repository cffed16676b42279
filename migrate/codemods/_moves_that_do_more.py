"""T1, told of: `net.to(setup(seed))`, whose device comes of a call that seeds, too: the move stays for it."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts.own_movers import MOVERS
from ..facts.script import Facts
from ..report import Note


def moves_that_do_more(facts: Facts, code: str) -> Iterator[Note]:
    for call in (c for name in MOVERS for c in facts.calls_of(name)):
        given = [*call.args, *(k.value for k in call.keywords)]
        does = next(
            (a for a in given if facts.devices.says_where(a) and facts.devices.effects.has(a, shown=False)), None
        )
        if does is not None:
            line, column, _, _ = facts.text.key(call)
            says = f"`{facts.short(call)}` stays: `{facts.short(does)}` does more than name a device"
            yield Note(line, column + 1, code, says)

"""T9: batch norm that a script synchronises by hand is the Trainer's `sync_batchnorm=`, or is told of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.script import Facts
from ..facts.synced_norms import conversions
from ..report import Note
from .amp_in_modules import TRAINERS
from .argument_rewrites import set_keyword
from .base import Change, Codemod


class SyncedNorms(Codemod):
    """A lifted loop's Trainer is given it where it is made; this is for the Trainers that a script has already."""

    code = "PTM420"
    name = "synced-norms"

    def plan(self, facts: Facts) -> Iterator[Change]:
        when = facts.sync_batchnorm
        for call in facts.walk(ast.Call) if when == "True" else ():
            if facts.names.resolve(call.func) not in TRAINERS:
                continue
            if not any(k.arg in ("sync_batchnorm", None) for k in call.keywords):
                says = "sync_batchnorm=True given to the Trainer: the module had converted its batch norm"
                yield Change(call, self.edit(facts, call, says), set_keyword("sync_batchnorm", "True"))


def told(original: Facts, text: str, plan: str) -> Iterator[Note]:
    """Notes where batch norm was converted and no Trainer of the result synchronises it.

    A kept loop has every process compute whole batches, so there is nothing to synchronise.
    """
    found = conversions(original)
    if not found or plan == "loop" or "sync_batchnorm=" in text or _converts(text):
        return
    line, column, _, _ = original.text.key(found[0])
    when = "" if original.sync_batchnorm == "True" else f" if {original.sync_batchnorm}"
    says = f"`{original.short(found[0])}` removed: give the Trainer sync_batchnorm=True{when}"
    yield Note(line, column + 1, SyncedNorms.code, says)


def _converts(text: str) -> bool:
    return "convert_sync" in text and bool(conversions(Facts(text)))

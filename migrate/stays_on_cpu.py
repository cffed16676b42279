"""A result that stays on the CPU: no step waits there for a card, and a device that is named is the CPU."""

from __future__ import annotations

import ast

from .facts.script import Facts
from .report import Note

OF_CARDS = ("PTM102", "PTM104", "PTM304", "PTM305")
RUNTIMES = ("ptmigrate.runtime.", "lightning.", "pytorch_lightning.")


def without_cards(after: Facts, notes: list[Note]) -> list[Note]:
    """The notes of a lifted script but for those of cards, where all its Trainers name the CPU."""
    trainers = [c for c in after.walk(ast.Call) if _is_trainer(after, c)]
    if not trainers or not all(map(_names_cpu, trainers)):
        return notes
    return [n for n in notes if n.code not in OF_CARDS]


def _is_trainer(facts: Facts, call: ast.Call) -> bool:
    full = facts.names.resolve(call.func) or ""
    return full.endswith(".Trainer") and full.startswith(RUNTIMES)


def _names_cpu(call: ast.Call) -> bool:
    given = next((k.value for k in call.keywords if k.arg == "accelerator"), None)
    return isinstance(given, ast.Constant) and given.value == "cpu"

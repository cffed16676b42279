"""T1, told of: what a script puts on several cards by their numbers is on one of them afterwards."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..facts.arguments import given_to
from ..facts.script import Facts
from ..report import Note

SEVERAL = re.compile(r"cuda(:|\(|[\"'], ?)[1-9]")
CARD = re.compile(r"['\"]?cuda:(\d+)['\"]?\Z")


def another_card(facts: Facts, code: str) -> Iterator[Note]:
    """Where the first move to a card beside the first one is, with the numbers of all."""
    found = _another(facts) if SEVERAL.search(facts.text.text) else None
    if found is not None:
        call, numbers = found
        line, column, _, _ = facts.text.key(call)
        says = f"`{facts.short(call)}`: cards {' and '.join(sorted(numbers))} had parts each, which one has now"
        yield Note(line, column + 1, code, f'{says}: where that is too small, strategy="pipeline" or "fsdp"')


def _another(facts: Facts) -> tuple[ast.Call, set[str]] | None:
    """The first such move, and the numbers; None where one or none is named."""
    found: dict[str, ast.Call] = {}
    for call in facts.walk(ast.Call):
        moved = facts.devices.moved(call)
        if moved is not None and facts.placed.by_runtime(moved):
            where = given_to(call)
            for number in _numbers(facts, where[0]) if where else ():
                found.setdefault(number, call)
    if len(found) < 2:
        return None
    later = sorted(found.values(), key=lambda call: (call.lineno, call.col_offset))
    return later[1], set(found)


def _numbers(facts: Facts, where: ast.expr) -> list[str]:
    """The number of the card that a device is, where it is written down; a choice of several is of none."""
    if isinstance(where, ast.Constant) and type(where.value) is int:
        return [str(where.value)]
    scope = facts.scopes.scope_of(where).lookup(where.id) if isinstance(where, ast.Name) else None
    if scope is not None and isinstance(where, ast.Name):
        given = facts.devices.assigned(where.id, scope) if where.id not in scope.params else None
        where = given[0] if given and len(given) == 1 else where
    if isinstance(where, ast.Attribute):  # self.dev0
        given = facts.devices.attribute_values.get(where.attr)
        where = given[0] if given and len(given) == 1 else where
    if isinstance(where, ast.Call) and facts.names.resolve(where.func) == "torch.device":
        if len(where.args) == 2:
            return _numbers(facts, where.args[1])
        where = where.args[0] if where.args else where
    said = CARD.match(where.value) if isinstance(where, ast.Constant) and isinstance(where.value, str) else None
    return [said[1]] if said else []

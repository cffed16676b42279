"""T1, told of: moves to what is a device by its name alone, `x.to(self.dev0)`, or is given a name on the way."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..facts.script import Facts
from ..report import Note

NAMED = re.compile(r"(^|_)(dev|device|gpu|cuda)s?_?\d+$")
MAY_BE = re.compile(r"\.to\((\w+\.)*\w*(dev|gpu|cuda)|\.to\(\w+ ?:=")  # in a text that may have one


def places_by_name(facts: Facts, code: str) -> Iterator[Note]:
    """Such calls, which no edit changes."""
    if not MAY_BE.search(facts.text.text):
        return
    for call in facts.walk(ast.Call):
        f = call.func
        if not (isinstance(f, ast.Attribute) and f.attr == "to" and call.args) or facts.names.resolve(f) is not None:
            continue
        where = call.args[0]
        asked = isinstance(where, ast.NamedExpr) and facts.devices.is_device(where.value)
        last = where.attr if isinstance(where, ast.Attribute) else getattr(where, "id", "")
        if asked or (NAMED.search(last) and not facts.devices.says_where(where)):
            line, column, _, _ = facts.text.key(call)
            yield Note(line, column + 1, code, f"`{facts.short(call)}` names a device, and stays")

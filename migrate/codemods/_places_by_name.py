"""T1, told of: moves to what is a device by its name alone, `x.to(self.dev0)`, `x.to(devices[1])`, or is given a name
on the way; and to devices of which the runtime places nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..facts.script import Facts
from ..report import Note

NAMED = re.compile(r"(^|_)(dev|device|gpu|cuda)s?_?\d+$")
SEVERAL = re.compile(r"(^|_)(devs|devices|gpus|cards)$|(^|_)(dev|device|gpu)_(list|pool)$", re.IGNORECASE)
# in a text that may have one
OTHERS = ("npu", "hpu", "mtia", "ipu")
WORDS = (*(f".{other}(" for other in OTHERS), "devs", "devices", "gpus")
TO_NAME = re.compile(r"\.to\((\s*(\w+\.)*\w*(dev|gpu|cuda|card)|\w+ ?:=)")


def places_by_name(facts: Facts, code: str) -> Iterator[Note]:
    """Such calls, which no edit changes."""
    lower = facts.text.text.lower()
    if not any(word in lower for word in WORDS) and not TO_NAME.search(lower):
        return
    for call in facts.walk(ast.Call):
        f = call.func
        if not isinstance(f, ast.Attribute) or facts.names.resolve(f) is not None:
            continue
        other = f.attr in OTHERS and all(k.arg in ("device", "non_blocking") for k in call.keywords)
        if (other and len(call.args) < 2) or (f.attr == "to" and call.args and _names(facts, call.args[0])):
            line, column, _, _ = facts.text.key(call)
            yield Note(line, column + 1, code, f"`{facts.short(call)}` names a device, and stays")


def _names(facts: Facts, where: ast.expr) -> bool:
    if isinstance(where, ast.NamedExpr):
        return facts.devices.is_device(where.value)
    if facts.devices.says_where(where):
        return False
    last = _last(where.value if isinstance(where, ast.Subscript) else where)
    if isinstance(where, ast.Subscript):
        return bool(SEVERAL.search(last))
    return bool(NAMED.search(last)) or (isinstance(where, ast.Name) and _is_one_of_several(facts, where))


def _is_one_of_several(facts: Facts, name: ast.Name) -> bool:
    """`d` of `for net, d in zip(nets, devices):`"""
    around = facts.scopes.generator_of(name)
    scope = facts.scopes.scope_of(name).lookup(name.id)
    for store in () if around is not None or scope is None else scope.stores.get(name.id, ()):
        around = next((u for u in facts.scopes.ancestors(store) if isinstance(u, ast.stmt)), None)  # type: ignore[assignment]
        if not isinstance(around, (ast.For, ast.AsyncFor)):
            return False
    if around is None:
        return False
    targets = around.target.elts if isinstance(around.target, ast.Tuple) else [around.target]
    called = around.iter.func if isinstance(around.iter, ast.Call) else None
    over = around.iter.args if isinstance(called, ast.Name) and called.id == "zip" else [around.iter]  # type: ignore[attr-defined]
    if isinstance(called, ast.Name) and called.id == "enumerate" and len(targets) == 2:
        targets, over = targets[1:], around.iter.args[:1]  # type: ignore[attr-defined]
    pairs = zip(targets, over, strict=False)
    return any(isinstance(t, ast.Name) and t.id == name.id and SEVERAL.search(_last(o)) for t, o in pairs)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")

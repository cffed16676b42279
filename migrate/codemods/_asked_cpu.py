"""T1, told of: an object that the script asks to keep its network on the CPU, `ModelEma(model, device="cpu")`.

Its moves go with all others, so that what it keeps is where the Trainer places the model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument
from ..facts.nodes import walk
from ..facts.script import Facts
from ..report import Note

SAYS = "what that keeps on the CPU is placed with the model now; its batches are to be where it is"


def asked_for_cpu(facts: Facts, code: str) -> Iterator[Note]:
    """The arguments that say so, of classes of this file that move by them what the runtime places."""
    for c in facts.walk(ast.ClassDef) if facts.devices.hosts.names_host else ():
        init = facts.classes.methods(c).get("__init__")
        for name in _moves_by(facts, c) if init is not None else ():
            for call in _made(facts, c):
                given = argument(call, init, name, True) if init is not None else None
                if given is not None and _may_be_cpu(given):
                    line, column, _, _ = facts.text.key(given)
                    yield Note(line, column + 1, code, f"`{facts.short(call)}`: {SAYS}")


def _made(facts: Facts, c: ast.ClassDef) -> list[ast.Call]:
    reads = facts.scopes.reads(c.name, facts.scopes.scope_of(c))
    return [u for r in reads if isinstance(u := facts.scopes.parents.get(r), ast.Call) and u.func is r]


def _moves_by(facts: Facts, c: ast.ClassDef) -> list[str]:
    """The names by which moves in a class go that the runtime makes: `self.net.to(device)`, `net.to(self.device)`."""
    found = []
    for call in (n for n in walk(c, ast.Call)):
        moved = facts.devices.moved(call)
        where = facts.devices.device_arguments(call) if moved is not None else []
        device = where[0].value if where and isinstance(where[0], ast.keyword) else where[0] if where else None
        if moved is not None and device is not None and facts.placed.by_runtime(moved):
            found.append(ast.unparse(device).removeprefix("self."))
    return list(dict.fromkeys(found))


def _may_be_cpu(given: ast.expr) -> bool:
    """`"cpu"`, `"cpu" if args.force_cpu else None`; not what says which device the script's is."""
    if isinstance(given, ast.IfExp):
        sides = given.body, given.orelse
        return any(map(_may_be_cpu, sides)) and any(getattr(s, "value", "cuda") in (None, "") for s in sides)
    return isinstance(given, ast.Constant) and given.value == "cpu"

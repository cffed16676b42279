"""T1: parts of a network that its class puts on several devices on purpose; the runtime has all of it on one.

`self.emb = nn.Embedding(10, 2).cpu()`: what is brought to the CPU for such a part stays where that is now. What goes
between `nn.Linear(2, 2).to(d0)` and `.to(d1)`, which the class is given, cannot be followed, and is told of.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..facts.arguments import given_to
from ..facts.batch_functions import is_own
from ..facts.nodes import FUNCTIONS
from ..facts.script import Facts, once_a_file
from ..report import Note

HOST = "the CPU"
OF_TYPES = re.compile(r"type|precision|half|float", re.IGNORECASE)
ONE = "the runtime has all of a network on one device"


def brought_to_parts(facts: Facts) -> Iterator[tuple[ast.Call, str]]:
    """`i.cpu()` of `self.emb(i.cpu())`, where that part was put on the CPU, and the part."""
    for c, name in dict.fromkeys((c, name) for c, name, _, where in _parts(facts) if where == HOST and name):
        for a in facts.attributes.get(name, ()):
            call = facts.scopes.parents.get(a)
            called = isinstance(call, ast.Call) and call.func is a and is_own(a) and c in facts.scopes.ancestors(a)
            for given in given_to(call) if called and isinstance(call, ast.Call) else ():
                if isinstance(given, ast.Call) and _place(facts, given) == HOST and not facts.is_fixed(given):
                    yield given, f"self.{name}"


def parts_apart(facts: Facts, code: str) -> Iterator[Note]:
    """The first part of a class that is elsewhere than others, by what is written there."""
    told: set[ast.ClassDef] = set()
    for c, _, call, where in _parts(facts):
        places = {w for other, _, _, w in _parts(facts) if other is c}
        given = sorted(w for w in places if w.startswith("`"))
        if c in told or not (where == HOST or (len(places) > 1 and where in given)):
            continue
        told.add(c)
        line, column, _, _ = facts.text.key(call)
        says = f"`{facts.short(call)}` puts a part on {where}"
        if given and where != HOST:
            says += f", others on {' and '.join(sorted(places - {where}))}: what forward moves between them goes there"
        more = f'{ONE}: where that is too small, strategy="pipeline" or "fsdp"'
        yield Note(line, column + 1, code, f"{says}; {more}")


@once_a_file
def _parts(facts: Facts) -> list[tuple[ast.ClassDef, str, ast.Call, str]]:
    """Class, attribute, move and place of the layers that a class moves as it makes them."""
    found = []
    for a in sorted((a for m in ("to", "cpu") for a in facts.attributes.get(m, ())), key=lambda a: a.lineno):
        call = facts.scopes.parents.get(a)
        f = next((up for up in facts.scopes.ancestors(a) if isinstance(up, FUNCTIONS)), None)
        c = facts.classes.holder(f) if f is not None else None
        if not isinstance(call, ast.Call) or call.func is not a or c not in facts.classes.modules or c is None:
            continue
        where = _place(facts, call) if isinstance(a.value, ast.Call) and facts.placed.is_module(a.value) else None
        if where is not None and f is not None and facts.classes.sets_up(f):
            s = facts.scopes.parents.get(call)
            target = s.targets[0] if isinstance(s, ast.Assign) else None
            found.append((c, target.attr if isinstance(target, ast.Attribute) else "", call, where))
    return found


def _place(facts: Facts, call: ast.Call) -> str | None:
    """The CPU by its name, or a parameter that is no type, where nothing shows that it is the script's device."""
    f = call.func
    if not isinstance(f, ast.Attribute) or call.keywords or len(call.args) != (f.attr == "to"):
        return None
    if f.attr == "cpu":
        return HOST
    where = call.args[0] if f.attr == "to" else None
    if isinstance(where, ast.Call) and facts.names.resolve(where.func) == "torch.device" and len(where.args) == 1:
        where = where.args[0]
    if isinstance(where, ast.Constant):
        return HOST if where.value == "cpu" else None
    scope = facts.scopes.scope_of(where).lookup(where.id) if isinstance(where, ast.Name) else None
    if scope is None or not isinstance(where, ast.Name) or facts.devices.moved(call) is not None:
        return None
    given = where.id in scope.params and where.id not in scope.stores and not OF_TYPES.search(where.id)
    return f"`{where.id}`" if given else None

"""Networks that an object keeps in a plain list, and that its steps go through: `self.models[i](x)`.

The Module has the object, and not its networks: no Trainer places them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.script import Facts
from .networks import OF_TORCH


def listed_network(facts: Facts) -> ast.expr | None:
    """What makes the first of them; None where no object has such a list."""
    for name in dict.fromkeys([*facts.devices.attribute_values, *_added_to(facts)]):
        made = next(_kept(facts, name), None)
        if made is not None and any(isinstance(a.ctx, ast.Load) for a in facts.attributes.get(name, ())):
            return made
    return None


def _added_to(facts: Facts) -> Iterator[str]:
    held = (call.func.value for call in facts.calls_of("append"))  # type: ignore[attr-defined]
    return (h.attr for h in held if isinstance(h, ast.Attribute))


def _kept(facts: Facts, name: str) -> Iterator[ast.expr]:
    """The modules that a list of that name is made of, or gets by `append`."""
    for v in facts.devices.attribute_values.get(name, ()):
        parts = [v.elt] if isinstance(v, ast.ListComp) else v.elts if isinstance(v, (ast.List, ast.Tuple)) else []
        yield from (p for p in parts if _is_module(facts, p))
    for call in facts.calls_of("append"):
        held = call.func.value  # type: ignore[attr-defined]
        if isinstance(held, ast.Attribute) and held.attr == name and call.args and _is_module(facts, call.args[0]):
            yield call.args[0]


def _is_module(facts: Facts, e: ast.expr) -> bool:
    """`nn.Linear(2, 2)`, `Net()` of a class of the file, and a name that is given such a call."""
    if isinstance(e, ast.Call):
        full = facts.names.resolve(e.func)
        if full is not None:
            return full.startswith(OF_TORCH) and facts.placed.is_module(e)
        return any(c.name == getattr(e.func, "id", "") for c in facts.classes.modules)
    scope = facts.scopes.scope_of(e).lookup(e.id) if isinstance(e, ast.Name) else None
    values = facts.devices.assigned(e.id, scope) if scope is not None and isinstance(e, ast.Name) else None
    return bool(values) and all(isinstance(v, ast.Call) and _is_module(facts, v) for v in values or ())

"""Networks that an object keeps in a plain list: `self.models[i](x)`.

The Module has the object, and not its networks: no Trainer places them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.plain_lists import ends_in_list
from ..facts.script import Facts
from .networks import OF_TORCH

LISTS = ast.List | ast.ListComp


def listed_network(facts: Facts) -> ast.expr | None:
    """What makes the first of them; None where no object but a network has such a list."""
    for made in _put_into_lists(facts):
        c = next((up for up in facts.scopes.ancestors(made) if isinstance(up, ast.ClassDef)), None)
        if c is not None and c not in facts.classes.modules and ends_in_list(facts, made, c):
            return made
    return None


def _put_into_lists(facts: Facts) -> Iterator[ast.expr]:
    """The modules that lists of attributes are made of, or get by `append`."""
    for values in facts.devices.attribute_values.values():
        for v in values:
            parts = [v.elt] if isinstance(v, ast.ListComp) else v.elts if isinstance(v, ast.List) else []
            yield from (p for p in parts if _is_module(facts, p))
    for call in facts.calls_of("append"):
        held = call.func.value  # type: ignore[attr-defined]
        values = facts.devices.attribute_values.get(held.attr, []) if isinstance(held, ast.Attribute) else []
        if values and all(isinstance(v, LISTS) for v in values) and call.args and _is_module(facts, call.args[0]):
            yield call.args[0]


def _is_module(facts: Facts, e: ast.expr) -> bool:
    """`nn.Linear(2, 2)`, `Net()` of a class of the file, and a name that is given such a call; no loss of torch's."""
    if isinstance(e, ast.Call):
        full = facts.names.resolve(e.func)
        if full is not None:
            return full.startswith(OF_TORCH) and not full.endswith("Loss") and facts.placed.is_module(e)
        return any(c.name == getattr(e.func, "id", "") for c in facts.classes.modules)
    scope = facts.scopes.scope_of(e).lookup(e.id) if isinstance(e, ast.Name) else None
    values = facts.devices.assigned(e.id, scope) if scope is not None and isinstance(e, ast.Name) else None
    return bool(values) and all(isinstance(v, ast.Call) and _is_module(facts, v) for v in values or ())

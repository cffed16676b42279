"""What torchvision makes of a picture or an array: `transforms.ToTensor()(img)`, which is on the CPU."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .script import Facts

HOME = "torchvision.transforms."
MAKERS = ("ToTensor", "PILToTensor")
FUNCTIONS = ("to_tensor", "pil_to_tensor")


def is_from_picture(facts: Facts, call: ast.Call) -> bool:
    """`ToTensor()(img)`, `F.to_tensor(img)`, and `transform(img)` of a Compose with one of these in it."""
    full = facts.names.resolve(call.func) or ""
    if full:
        return full.startswith(HOME) and full.rpartition(".")[2] in FUNCTIONS
    return _makes_tensors(facts, call.func)


def _makes_tensors(facts: Facts, e: ast.expr) -> bool:
    if isinstance(e, ast.Name):
        scope = facts.scopes.scope_of(e).lookup(e.id)
        values = facts.devices.assigned(e.id, scope) if scope is not None and e.id not in scope.params else None
        return bool(values) and all(isinstance(v, ast.Call) and _makes_tensors(facts, v) for v in values or ())
    if isinstance(e, ast.Attribute):
        kept = facts.devices.attribute_values.get(e.attr, ())
        return bool(kept) and all(isinstance(v, ast.Call) and _makes_tensors(facts, v) for v in kept)
    full = (facts.names.resolve(e.func) or "") if isinstance(e, ast.Call) else ""
    last = full.rpartition(".")[2]
    if not isinstance(e, ast.Call) or not full.startswith(HOME) or last in MAKERS:
        return full.startswith(HOME) and last in MAKERS
    parts = e.args[0].elts if last == "Compose" and e.args and isinstance(e.args[0], (ast.List, ast.Tuple)) else []
    return any(isinstance(p, ast.Call) and _makes_tensors(facts, p) for p in parts)

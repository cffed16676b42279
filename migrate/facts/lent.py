"""What a plain class has from elsewhere and moves beside a tensor that it is given: nothing shows that it is there.

`self.mid = self.mid.to(y0.device)`, with `mid` of a subclass, and no other `self.mid = ...` in the file.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import given_to
from .back_from_cpu import MOVES
from .nodes import FUNCTIONS, walk
from .unplaced import before_the_loop

if TYPE_CHECKING:
    from .script import Facts

WEIGHT_FIRST = ("CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss")


def is_lent(facts: Facts, node: ast.expr) -> bool:
    """Whether a value is moved there that the class is lent, to where a parameter is."""
    up = facts.scopes.parents.get(node)
    call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) and up.attr in MOVES else None
    if not isinstance(call, ast.Call) or call.func is not up:
        return False
    own = _own(facts, node)
    holder = next((u for u in facts.scopes.ancestors(node) if isinstance(u, ast.ClassDef)), None) if own else None
    if own is None or holder is None or holder in facts.classes.modules or not _has_none_other(facts, own.attr):
        return False
    return any(_is_of_parameter(facts, where) for where in given_to(call))


def _own(facts: Facts, node: ast.expr, depth: int = 0) -> ast.Attribute | None:
    """The `self.x` that a value is a part of, or one of the elements."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return node
        node = node.value
    if not isinstance(node, ast.Name) or depth > 2:  # `for x in x` asks for itself
        return None
    for up in facts.scopes.ancestors(node):
        for g in getattr(up, "generators", ()):
            if isinstance(g.target, ast.Name) and g.target.id == node.id:
                return _own(facts, g.iter, depth + 1)
    return None


def _has_none_other(facts: Facts, name: str) -> bool:
    """Whether an attribute is given nothing here but what is made of itself."""
    stores = (a for a in facts.attributes[name] if not isinstance(a.ctx, ast.Load))
    values = [getattr(facts.scopes.statement_of(a), "value", None) for a in stores]
    return all(v is not None and any(n.attr == name for n in walk(v, ast.Attribute)) for v in values)


def _is_of_parameter(facts: Facts, where: ast.expr, depth: int = 0) -> bool:
    """`y0.device` of a parameter, by any name."""
    if isinstance(where, ast.Attribute) and where.attr == "device" and isinstance(where.value, ast.Name):
        if where.value.id == "self":
            values = facts.devices.attribute_values.get("device", [])
            return depth < 2 and bool(values) and all(_is_of_parameter(facts, v, depth + 1) for v in values)
        home = facts.scopes.scope_of(where).lookup(where.value.id)
        return home is not None and isinstance(home.node, FUNCTIONS) and where.value.id in home.params
    home = facts.scopes.scope_of(where).lookup(where.id) if isinstance(where, ast.Name) else None
    given = facts.devices.assigned(where.id, home) if isinstance(where, ast.Name) and home is not None else None
    return depth < 2 and bool(given) and all(_is_of_parameter(facts, v, depth + 1) for v in given or ())


def is_weighed_by_lent(facts: Facts, node: ast.expr) -> bool:
    """Whether a criterion is made and moved in a method, with weights that a plain object was given: nothing else
    moves those. `nn.CrossEntropyLoss(weight=self.weight).cuda()`
    """
    up = facts.scopes.parents.get(node)
    if not isinstance(up, ast.Attribute) or up.attr not in MOVES:
        return False
    made = _made(facts, node)
    if made is None or before_the_loop(facts, facts.scopes.statement_of(node)):
        return False  # which a Module takes along
    given = [k.value for k in made.keywords if k.arg in ("weight", "pos_weight")]
    if (facts.names.resolve(made.func) or "").endswith(WEIGHT_FIRST):
        given += made.args[:1]
    return any(_is_of_plain_object(facts, a) for a in given)


def _made(facts: Facts, node: ast.expr) -> ast.Call | None:
    """The call of a criterion of torch's that a value is, or that a name of the same function is given."""
    if isinstance(node, ast.Name):
        home = facts.scopes.scope_of(node).lookup(node.id)
        given = facts.devices.assigned(node.id, home) if home is not None and isinstance(home.node, FUNCTIONS) else None
        made = [v for v in given or () if not any(n.id == node.id for n in walk(v, ast.Name))]
        return _made(facts, made[0]) if len(made) == 1 and not isinstance(made[0], ast.Name) else None
    full = facts.names.resolve(node.func) if isinstance(node, ast.Call) else None
    return (
        node if isinstance(node, ast.Call) and full and full.startswith("torch.nn.") and full.endswith("Loss") else None
    )


def _is_of_plain_object(facts: Facts, a: ast.expr) -> bool:
    """`self.weight`, of an object that is no module and was given it."""
    if not (isinstance(a, ast.Attribute) and isinstance(a.value, ast.Name) and a.value.id == "self"):
        return False
    f = next((u for u in facts.scopes.ancestors(a) if isinstance(u, FUNCTIONS)), None)
    holder = facts.classes.holder(f) if f is not None else None
    if f is None or f.name == "__init__" or holder is None or holder in facts.classes.modules:
        return False
    values = [getattr(facts.scopes.statement_of(s), "value", None) for s in facts.attributes[a.attr]]
    given = [v for v in values if isinstance(v, ast.Name)]
    homes = [(v, facts.scopes.scope_of(v).lookup(v.id)) for v in given]
    return any(h is not None and v.id in h.params for v, h in homes)

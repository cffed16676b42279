"""T4: samplers in a dictionary of them: `{"train": DistributedSampler(a), "val": ...}`, read by their keys."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts


def read_by_key(facts: Facts, value: ast.expr, made: ast.AST) -> tuple[ast.Assign, list[ast.Subscript]] | None:
    """The assignment of a dictionary that has `value`, and where that is read; None where it may be read otherwise."""
    s = facts.scopes.parents.get(made)
    target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 and s.value is made else None
    scope = facts.scopes.scope_of(target).lookup(target.id) if isinstance(target, ast.Name) else None
    if not isinstance(s, ast.Assign) or not isinstance(target, ast.Name) or scope is None:
        return None
    if len(scope.stores.get(target.id, ())) != 1 or (facts.is_library and scope is facts.scopes.module):
        return None
    wanted = key_of(made, value)
    found: list[ast.Subscript] = []
    for read in facts.scopes.reads(target.id, scope):
        place = facts.scopes.parents.get(read)
        if not (isinstance(place, ast.Subscript) and place.value is read and isinstance(place.ctx, ast.Load)):
            return None
        key = getattr(place.slice, "value", None) if isinstance(place.slice, ast.Constant) else None
        if isinstance(made, ast.DictComp):
            if not _says_the_same(facts, made, value, place.slice):
                return None
            found.append(place)
        elif key is None:
            return None
        elif key == wanted:
            found.append(place)
    return (s, found) if wanted is not None or isinstance(made, ast.DictComp) else None


def key_of(made: ast.AST, value: ast.expr) -> str | None:
    """The text under which a dictionary's display has a value."""
    if not isinstance(made, ast.Dict):
        return None
    keys = [k for k, v in zip(made.keys, made.values, strict=True) if v is value]
    alone = all(isinstance(k, ast.Constant) and isinstance(k.value, str) for k in made.keys)
    return keys[0].value if keys and alone else None  # type: ignore[union-attr]


def _says_the_same(facts: Facts, made: ast.DictComp, value: ast.expr, key: ast.expr) -> bool:
    """Whether what the sampler is made with means the same where it is read: `shuffle=x == "train"`, at `[x]`."""
    if len(made.generators) > 1 or not isinstance(made.key, ast.Name):
        return False
    calls = list(walk(value, ast.Call))
    said = [e for c in calls for e in (*c.args[1:], *(k.value for k in c.keywords if k.arg != "dataset"))]
    asks = any(isinstance(n, ast.Name) and n.id == made.key.id for v in said for n in walk(v))
    held = facts.scopes.parents.get(facts.scopes.parents.get(key))  # type: ignore[arg-type]
    epoch = isinstance(held, ast.Attribute) and held.attr == "set_epoch"
    return not asks or epoch or (isinstance(key, ast.Name) and key.id == made.key.id)

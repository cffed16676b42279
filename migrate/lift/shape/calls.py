"""Where a function of this file, or a method of a class of this file, is called."""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts, once_a_file
from ...facts.spelled import spelled
from ..loaders import values_of
from ..texts import by_text
from .called_beyond import called_beyond, is_taken

MODES = ("train", "eval")
OF_NETWORKS = ("parameters", "named_parameters", "state_dict", "load_state_dict")


def only_call(facts: Facts, f: ast.FunctionDef, decorated: bool = False) -> ast.Call | None:
    """The one call of a function or method; None where there are others, or where it is handed on as a value.

    `decorated`: whether it may be.
    """
    calls = _calls(facts, f) if decorated else all_calls(facts, f)
    return calls[0] if len(calls) == 1 else None


def all_calls(facts: Facts, f: ast.FunctionDef) -> list[ast.Call]:
    """The calls of a function or method; none where it is decorated, or handed on as a value, too."""
    return [] if f.decorator_list else _calls(facts, f)


@once_a_file
def _calls(facts: Facts, f: ast.FunctionDef) -> list[ast.Call]:
    if by_text(facts, f) is not None:
        return []
    if not facts.scopes.scope_of(f).is_class:
        if is_taken(facts, f):
            return []
        uses = facts.devices.uses_of_function(f)
        return [u for u in uses if isinstance(u, ast.Call)] if all(isinstance(u, ast.Call) for u in uses) else []
    owner = facts.scopes.scope_of(f).node
    assert isinstance(owner, ast.ClassDef)
    if any(g.name == f.name and g is not f and not _is_strangers(facts, g, owner) for g in facts.walk(ast.FunctionDef)):
        return []
    if called_beyond(facts, owner, f.name):
        return []
    calls = []
    for named in facts.attributes.get(f.name, ()):
        if not is_of_stranger(facts, named, owner):
            call = facts.scopes.parents.get(named)
            if isinstance(call, ast.Call) and call.func is named and of_another(facts, call, named, f):
                continue
            if not isinstance(call, ast.Call) or call.func is not named or receiver(facts, call, f) is None:
                return []
            calls.append(call)
    return calls


def of_another(facts: Facts, call: ast.Call, named: ast.Attribute, f: ast.FunctionDef) -> bool:
    """Whether it is the method of another object: `model.train()` is no call of `train(self, loader)`, nor of a
    trainer's `train(self)`.
    """
    owner = facts.scopes.scope_of(f).node
    if isinstance(owner, ast.ClassDef) and is_of_stranger(facts, named, owner):
        return True
    return not _fits(call, f) or (f.name in MODES and _is_network(facts, named.value, f))


def is_of_stranger(facts: Facts, named: ast.Attribute, owner: ast.ClassDef) -> bool:
    """Whether `x.a` is asked of an object that is known to be of a class that has nothing to do with `owner`."""
    known = owner_of(facts, named.value) if isinstance(named.value, ast.Name) else None
    return known is not None and known not in facts.classes.kin(owner)


def _is_strangers(facts: Facts, f: ast.FunctionDef, owner: ast.ClassDef) -> bool:
    holder = facts.classes.holder(f)
    return holder is not None and holder not in facts.classes.kin(owner)


def _is_network(facts: Facts, node: ast.expr, f: ast.FunctionDef) -> bool:
    """Whether an object is called, or asked for what modules have, and those of the method's class cannot be."""
    owner = facts.scopes.scope_of(f).node
    if not isinstance(owner, ast.ClassDef) or (owner.bases and not _of_object(owner)):
        return False
    own = {s.name for s in owner.body if isinstance(s, ast.FunctionDef)}
    if own & {*OF_NETWORKS}:
        return False
    texts = {spelled(node)}
    if isinstance(node, ast.Name) and (scope := facts.scopes.scope_of(node).lookup(node.id)) is not None:
        texts.update(spelled(v) for v in values_of(facts, node.id, scope))
    asked, called = _treated_as_networks(facts)
    return not texts.isdisjoint(asked) or ("__call__" not in own and not texts.isdisjoint(called))


@once_a_file
def _treated_as_networks(facts: Facts) -> tuple[set[str], set[str]]:
    """What is asked for what modules have, and what is called, by its source."""
    calls = [c.func for c in facts.walk(ast.Call) if isinstance(c.func, (ast.Name, ast.Attribute))]
    asked = {spelled(f.value) for f in calls if isinstance(f, ast.Attribute) and f.attr in OF_NETWORKS}
    return asked, {spelled(f) for f in calls}


def _of_object(owner: ast.ClassDef) -> bool:
    return all(isinstance(b, ast.Name) and b.id == "object" for b in owner.bases)


def _fits(call: ast.Call, f: ast.FunctionDef) -> bool:
    """Whether the call gives as many arguments as the method needs."""
    needed = len(f.args.args) - 1 - len(f.args.defaults)
    unpacks = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
    return unpacks or len(call.args) + len(call.keywords) >= needed


def receiver(facts: Facts, call: ast.Call, f: ast.FunctionDef) -> ast.Name | None:
    """The object of `object.method(...)`: `self` in the same class, or a name that holds an instance of it."""
    owner = facts.scopes.scope_of(f).node
    if not isinstance(owner, ast.ClassDef) or not isinstance(call.func, ast.Attribute):
        return None
    name = call.func.value
    if not isinstance(name, ast.Name):
        return None
    inside = enclosing_function(facts, call)
    if inside is not None and facts.scopes.scope_of(inside).node is owner and inside.args.args:
        return name if name.id == inside.args.args[0].arg else None
    return name if class_of(facts, name) is owner else None


def class_of(facts: Facts, name: ast.Name) -> ast.ClassDef | None:
    """The class of this file that a name is made an instance of, in its only assignment."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    values = values_of(facts, name.id, scope) if scope is not None else []
    if len(values) != 1 or not isinstance(values[0], ast.Call) or not isinstance(values[0].func, ast.Name):
        return None
    home = facts.scopes.scope_of(values[0].func).lookup(values[0].func.id)
    made = home.stores.get(values[0].func.id, []) if home is not None else []
    return made[0] if len(made) == 1 and isinstance(made[0], ast.ClassDef) else None


def owner_of(facts: Facts, name: ast.Name) -> ast.ClassDef | None:
    """The class of `self`, or of a name that holds an instance."""
    f = enclosing_function(facts, name)
    if f is not None and f.args.args and f.args.args[0].arg == name.id:
        holder = facts.scopes.scope_of(f).node
        return holder if isinstance(holder, ast.ClassDef) else None
    return class_of(facts, name)


def enclosing_function(facts: Facts, node: ast.AST) -> ast.FunctionDef | None:
    return next((up for up in facts.scopes.ancestors(node) if isinstance(up, ast.FunctionDef)), None)


def called_below(facts: Facts, node: ast.AST) -> set[ast.FunctionDef]:
    """The functions of the file that a statement may come to run, by the names that it calls."""
    by_name: dict[str, list[ast.FunctionDef]] = {}
    for f in facts.walk(ast.FunctionDef):
        by_name.setdefault(f.name, []).append(f)
    found: set[ast.FunctionDef] = set()
    new: list[ast.AST] = [node]
    while new:
        for n in walk(new.pop()):
            name = getattr(n, "id", getattr(n, "attr", None)) if isinstance(n, (ast.Name, ast.Attribute)) else None
            more = [f for f in by_name.get(name or "", ()) if f not in found]
            found.update(more)
            new += more
    return found

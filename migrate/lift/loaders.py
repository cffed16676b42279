"""What a batch loop iterates over, and whether it is shown to be a DataLoader."""

from __future__ import annotations

import ast

from ..facts.other_files import defined_there
from ..facts.runtime_names import runtime_name
from ..facts.scopes import Scope
from ..facts.script import Facts, once_a_file
from .nodes import local_function, returned
from .recipe import CannotLift

BATCHES = "Batches"  # of the runtime: what a loop cut by hand


def batch_source(facts: Facts, loop: ast.For) -> tuple[ast.expr, ast.expr, str | None, ast.expr | None]:
    """(loader, target of a batch, index name, index start) of a batch loop; tqdm around it is left out."""
    source, target, index, start = loop.iter, loop.target, None, None
    for _ in range(3):
        if not isinstance(source, ast.Call) or not source.args:
            break
        if isinstance(source.func, ast.Name) and source.func.id == "enumerate" and index is None:
            if not (isinstance(target, ast.Tuple) and len(target.elts) == 2 and isinstance(target.elts[0], ast.Name)):
                raise CannotLift(loop, "the batch loop unpacks enumerate() in an unusual way")
            index, target = target.elts[0].id, target.elts[1]
            start = source.args[1] if len(source.args) > 1 else None
            start = next((k.value for k in source.keywords if k.arg == "start"), start)
            if isinstance(start, ast.Constant) and start.value == 0:
                start = None
            source = source.args[0]
        elif is_progress(facts, source):
            source = source.args[0]
        else:
            break
    return source, target, index, start


def looped_over(facts: Facts, loop: ast.For | ast.comprehension) -> ast.expr:
    """What a loop goes over; enumerate() and bars around it are left out."""
    source = loop.iter
    while isinstance(source, ast.Call) and source.args:
        if not (isinstance(source.func, ast.Name) and source.func.id == "enumerate") and not is_progress(facts, source):
            break
        source = source.args[0]
    return source


def is_progress(facts: Facts, call: ast.Call) -> bool:
    """A bar around what it goes over; `trange(n)` is no such bar, it counts."""
    full = facts.names.resolve(call.func) or ""
    return (full.split(".")[0] == "tqdm" and not counts_with_bar(facts, call)) or full == "rich.progress.track"


def counts_with_bar(facts: Facts, call: ast.Call) -> bool:
    """`trange(n)` of tqdm, which is `tqdm(range(n))`."""
    full = facts.names.resolve(call.func) or ""
    return full.split(".")[0] == "tqdm" and full.split(".")[-1] in ("trange", "tnrange")


def iterates_loader(facts: Facts, loop: ast.For) -> bool:
    try:
        source, _, _, _ = batch_source(facts, loop)
    except CannotLift:
        return False
    return is_loader(facts, source)


def is_loader(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """Whether every value of the expression is a DataLoader, as far as this file shows."""
    if depth > 8:
        return False
    if isinstance(node, ast.Call):
        full = facts.names.resolve(node.func)
        if full is not None and full.split(".")[-1] in ("DataLoader", "StatefulDataLoader"):
            return True
        if runtime_name(facts, node.func) == BATCHES:
            return True
        if isinstance(node.func, ast.Name):
            f = local_function(facts, node.func)
            if f is not None:
                values = returned(f)
                return bool(values) and all(is_loader(facts, r, depth + 1) for r in values)
        return _gives_loaders(facts, node, None, depth)
    if isinstance(node, ast.IfExp):
        return is_loader(facts, node.body, depth + 1) and is_loader(facts, node.orelse, depth + 1)
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return not isinstance(node.slice, ast.Slice) and _all_values(facts, node.value, key, depth)
    if isinstance(node, ast.Attribute):
        values = _of_attribute(facts, node)
        return bool(values) and all(is_loader(facts, v, depth + 1) for v in values)
    if not isinstance(node, ast.Name):
        return False
    scope = facts.scopes.scope_of(node).lookup(node.id)
    if scope is None:
        return False
    values = values_of(facts, node.id, scope)
    if not values and (there := _unpacked_there(facts, node.id, scope)) is not None:
        return _gives_loaders(facts, *there, depth)
    return bool(values) and all(is_loader(facts, v, depth + 1) for v in values)


def _gives_loaders(facts: Facts, call: ast.Call, place: int | None, depth: int) -> bool:
    """Whether a function of another file gives back loaders alone, or a tuple with one at such a place."""
    there, values = _given_there(facts, call, place)
    return bool(values) and all(is_loader(there, v, depth + 1) for v in values)


def _given_there(facts: Facts, call: ast.Call, place: int | None) -> tuple[Facts, list[ast.expr]]:
    """What a function of another file gives back, or has at a place of the tuples; nothing where none does."""
    named = isinstance(call.func, (ast.Name, ast.Attribute)) and bool(facts.others)
    there = defined_there(facts, call.func) if named else None
    if there is None or there.holder is not None or not isinstance(there.f, ast.FunctionDef):
        return facts, []
    values = returned(there.f)
    if place is not None:
        tuples = [v for v in values if isinstance(v, ast.Tuple) and place < len(v.elts)]
        values = [v.elts[place] for v in tuples] if len(tuples) == len(values) else []
    return there.facts, values


def _unpacked_there(facts: Facts, name: str, scope: Scope) -> tuple[ast.Call, int] | None:
    """The call and the place of a name that one statement unpacks: `train_loader, test_loader = get_loaders()`."""
    stores = scope.stores.get(name, [])
    target = facts.scopes.parents.get(stores[0]) if len(stores) == 1 and name not in scope.params else None
    s = facts.scopes.parents.get(target) if isinstance(target, ast.Tuple) else None
    if not isinstance(target, ast.Tuple) or not isinstance(s, ast.Assign) or not isinstance(s.value, ast.Call):
        return None
    place = target.elts.index(stores[0])  # type: ignore[arg-type]
    return None if any(isinstance(e, ast.Starred) for e in target.elts) else (s.value, place)


def _all_values(facts: Facts, holder: ast.expr, key: object, depth: int) -> bool:
    """Whether what is written out, or what a function gives, holds nothing but loaders: `{"train": DataLoader()}`.

    `key`: a constant that it is asked for, under which there is one.
    """
    if depth > 8:
        return False
    if isinstance(holder, ast.Dict):
        own = [
            v for k, v in zip(holder.keys, holder.values, strict=True) if isinstance(k, ast.Constant) and k.value == key
        ]
        return bool(holder.values) and all(is_loader(facts, v, depth + 1) for v in own or holder.values)
    if isinstance(holder, (ast.Tuple, ast.List)):
        starred = any(isinstance(e, ast.Starred) for e in holder.elts)
        at = isinstance(key, int) and -len(holder.elts) <= key < len(holder.elts) and not starred
        own = [holder.elts[key]] if at and isinstance(key, int) else holder.elts
        return bool(own) and all(is_loader(facts, v, depth + 1) for v in own)
    if isinstance(holder, ast.DictComp):
        return is_loader(facts, holder.value, depth + 1)
    home, kinds = facts, list[ast.expr]()
    if isinstance(holder, ast.Name):
        scope = facts.scopes.scope_of(holder).lookup(holder.id)
        kinds = values_of(facts, holder.id, scope) if scope is not None else []
        if not kinds and scope is not None and (there := _unpacked_there(facts, holder.id, scope)) is not None:
            home, kinds = _given_there(facts, *there)
    elif isinstance(holder, ast.Attribute):
        kinds = _of_attribute(facts, holder)
    elif isinstance(holder, ast.Call):
        f = local_function(facts, holder.func) if isinstance(holder.func, ast.Name) else None
        home, kinds = (facts, returned(f)) if f is not None else _given_there(facts, holder, None)
    return bool(kinds) and all(_all_values(home, kind, key, depth + 1) for kind in kinds)


def _of_attribute(facts: Facts, node: ast.Attribute) -> list[ast.expr]:
    from .optimizers import attribute_values

    return attribute_values(facts, node)


@once_a_file
def values_of(facts: Facts, name: str, scope: Scope) -> list[ast.expr]:
    """What a name of a scope is given; nothing where one of its bindings does not show it."""
    values: list[ast.expr] = []
    for store in scope.stores.get(name, ()):
        parent = facts.scopes.parents.get(store)
        if isinstance(parent, ast.Assign):
            values.append(parent.value)
        elif isinstance(parent, ast.Tuple) and isinstance(facts.scopes.parents.get(parent), ast.Assign):
            values += unpacked(facts, parent, store)
        else:
            return []
    if name in scope.params:
        values += facts.devices.given(scope, name) or []
    return values


def unpacked(facts: Facts, target: ast.Tuple, store: ast.AST) -> list[ast.expr]:
    """`train_loader, test_loader = get_loaders()`: the elements that the function's returns have at that place."""
    assign = facts.scopes.parents[target]
    assert isinstance(assign, ast.Assign)
    place = next(i for i, e in enumerate(target.elts) if e is store)
    value = assign.value
    if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        return [value.elts[place]]
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        f = local_function(facts, value.func)
        if f is not None:
            values = returned(f)
            if all(isinstance(r, ast.Tuple) and len(r.elts) == len(target.elts) for r in values):
                return [r.elts[place] for r in values]  # type: ignore[attr-defined]
    return []


def batch_sizes(facts: Facts, node: ast.expr, depth: int = 0) -> set[str]:
    """The sources of the batch size that the DataLoaders behind an expression are made with: names and numbers."""
    found: set[str] = set()
    if depth > 8:
        return found
    if isinstance(node, ast.Call):
        full = facts.names.resolve(node.func) or ""
        if full.split(".")[-1] in ("DataLoader", "StatefulDataLoader"):
            given = node.args[1] if len(node.args) > 1 else None
            given = next((k.value for k in node.keywords if k.arg == "batch_size"), given)
            if isinstance(given, (ast.Name, ast.Attribute, ast.Constant)):
                found.add(ast.unparse(given))
        elif runtime_name(facts, node.func) == BATCHES:
            found |= {ast.unparse(k.value) for k in node.keywords if k.arg == "size"}
        elif isinstance(node.func, ast.Name) and (f := local_function(facts, node.func)) is not None:
            for value in returned(f):
                found |= batch_sizes(facts, value, depth + 1)
    elif isinstance(node, ast.Name):
        scope = facts.scopes.scope_of(node).lookup(node.id)
        if scope is not None:
            for v in values_of(facts, node.id, scope):
                found |= batch_sizes(facts, v, depth + 1)
    elif isinstance(node, ast.Attribute):
        for s in facts.walk(ast.Assign):
            if any(isinstance(t, ast.Attribute) and t.attr == node.attr for t in s.targets):
                found |= batch_sizes(facts, s.value, depth + 1)
    return found

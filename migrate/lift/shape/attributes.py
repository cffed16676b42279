"""Attributes that the loop of a class works with become names of the method that holds the loop.

`for x, y in self.loader:` becomes `loader = self.loader` above the epoch loop and `for x, y in loader:` in it. Only
attributes that nothing sets while the loop runs: the constructor does, or a method that is called before the loop.
What the constructor sets gets its name where the method reads it first, so that the optimizer is made with that name.
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts
from ...facts.spelled import spelled
from ..backwards import training_backwards
from ..networks import with_parameters
from .calls import is_of_stranger, owner_of
from .edits import Edits

CALLED = ("step", "zero_grad", "train", "eval", "backward", "update", "unscale_", "scale")


def name_attributes(facts: Facts) -> str | None:
    """The text with the loop's attributes read into names before it; None where there are none."""
    loop = _outer_loop(facts)
    if loop is None:
        return None
    wanted: dict[str, ast.Attribute] = {}
    models = with_parameters(facts)
    for n in (n for n in walk(loop) if isinstance(n, (ast.Attribute, ast.Call, ast.For))):
        for a in _worked_with(n, models):
            if _is_set_before(facts, a, loop, models):
                wanted.setdefault(spelled(a), a)
    if not wanted:
        return None
    edits = Edits(facts)
    scope = facts.scopes.scope_of(loop)
    taken = {*scope.stores, *scope.params, *scope.read(), *scope.globals}
    names = {}
    for text, a in wanted.items():
        name = a.attr.strip("_") or a.attr
        while name in taken:
            name += "_"
        taken.add(name)
        names[text] = name
    block = facts.scopes.block_of(loop)
    at = block.index(loop)
    lines: dict[int, list[str]] = {}
    reads = [_reads(s, {a.attr for a in wanted.values()}) for s in block[: at + 1]]
    for text, name in names.items():
        first = next((i for i in range(at) if text in reads[i]), at) if _lasts(facts, wanted[text]) else at
        lines.setdefault(first, []).append(f"{facts.text.margin(loop)}{name} = {text}")
        for read in reads[first:]:
            for n in read.get(text, ()):
                edits.replace_node(n, name)
    for i, new in lines.items():
        first = facts.text.line_of(facts.text.span(block[i])[0])
        edits.replace_lines(first, first - 1, new)
    return edits.done()


def _reads(s: ast.stmt, names: set[str]) -> dict[str, list[ast.Attribute]]:
    """The attributes of these names that a statement reads, by their text."""
    found: dict[str, list[ast.Attribute]] = {}
    for n in walk(s, ast.Attribute):
        if n.attr in names and isinstance(n.ctx, ast.Load):
            found.setdefault(spelled(n), []).append(n)
    return found


def _lasts(facts: Facts, a: ast.Attribute) -> bool:
    """Whether what an attribute holds is the constructor's, so that the method has it from its first line on."""
    assert isinstance(a.value, ast.Name)
    return all(_sets_up(facts, store, None) for store in _stores(facts, a.attr, owner_of(facts, a.value)))


def _stores(facts: Facts, name: str, owner: ast.ClassDef | None) -> list[ast.Attribute]:
    """Where an attribute of that name may be set on objects of a class."""
    stores = facts.stores_of(name)
    return [n for n in stores if owner is None or not is_of_stranger(facts, n, owner)]


def _outer_loop(facts: Facts) -> ast.For | ast.While | None:
    """The outermost loop around a backward(), in the function that holds it."""
    for call in training_backwards(facts):
        found: ast.For | ast.While | None = None
        for up in facts.scopes.ancestors(call):
            if isinstance(up, (ast.For, ast.While)):
                found = up
            elif isinstance(up, ast.FunctionDef) and found is not None:
                break
        return found
    return None


def _worked_with(n: ast.AST, models: set[str]) -> list[ast.Attribute]:
    """`x.a` in `x.a.step()`, `x.a(batch)`, `x.a.parameters()`, `for ... in x.a`, and wherever it is a model."""
    found: list[ast.AST] = []
    if isinstance(n, ast.Attribute) and n.attr in models:
        found.append(n)
    if isinstance(n, ast.Call):
        if isinstance(n.func, ast.Attribute) and n.func.attr in (*CALLED, "parameters"):
            found.append(n.func.value)
        if isinstance(n.func, ast.Attribute) and not n.keywords and n.args:
            found.append(n.func)
        if isinstance(n.func, ast.Name) and n.func.id == "enumerate" and n.args:
            found.append(n.args[0])
    elif isinstance(n, ast.For):
        found.append(n.iter)
    return [a for a in found if isinstance(a, ast.Attribute) and isinstance(a.value, ast.Name)]


def _is_set_before(facts: Facts, a: ast.Attribute, loop: ast.AST, models: set[str]) -> bool:
    """Whether the object is one of a class of this file, and nothing sets its attribute from the loop on.

    What nothing here sets is made by the constructor of a base class in another file: a model, whose parameters an
    optimizer of this file steps, so that another one would not be trained.
    """
    assert isinstance(a.value, ast.Name)
    owner = owner_of(facts, a.value)
    if owner is None or any(isinstance(s, (ast.FunctionDef, ast.ClassDef)) and s.name == a.attr for s in owner.body):
        return False
    if _is_made_in(facts, a.value, loop):
        return False  # each fold has an object of its own
    stores = _stores(facts, a.attr, owner)
    if not stores:
        return a.attr in models and _has_base_elsewhere(facts, owner)
    return all(_sets_up(facts, store, loop) for store in stores)


def _is_made_in(facts: Facts, name: ast.Name, loop: ast.AST) -> bool:
    home = facts.scopes.scope_of(name).lookup(name.id)
    stores = home.stores.get(name.id, ()) if home is not None else ()
    return any(loop in facts.scopes.ancestors(s) for s in stores)


def _has_base_elsewhere(facts: Facts, owner: ast.ClassDef) -> bool:
    """Whether a class is made from one that another file of the project has, for all that shows."""
    for base in owner.bases:
        full = facts.names.resolve(base) or ""
        stores = facts.scopes.module.stores.get(base.id, ()) if isinstance(base, ast.Name) else ()
        imported = all(isinstance(s, ast.alias) for s in stores) and (bool(stores) or "." in full)
        if imported and not full.startswith(("torch.", "abc.")):
            return True
    return False


def _sets_up(facts: Facts, node: ast.AST, loop: ast.AST | None, depth: int = 0) -> bool:
    """Whether a node runs before the loop: in a constructor, or in a method that only these and the statements above
    the loop call: `self.build_model()`.
    """
    f = next((up for up in facts.scopes.ancestors(node) if isinstance(up, ast.FunctionDef)), None)
    if f is None or depth > 4:
        return False
    if f.name == "__init__" or _is_above(facts, node, loop):
        return True
    owner = facts.classes.holder(f)
    named = facts.attributes.get(f.name, [])
    uses = [n for n in named if owner is None or not is_of_stranger(facts, n, owner)]
    own = all(isinstance(n.value, ast.Name) and n.value.id == "self" and _called(facts, n) for n in uses)
    return bool(uses) and own and all(_sets_up(facts, n, loop, depth + 1) for n in uses)


def _is_above(facts: Facts, node: ast.AST, loop: ast.AST | None) -> bool:
    """Whether a node is in a statement of the loop's own block, above it."""
    if loop is None:
        return False
    up, parent = node, facts.scopes.parents.get(node)
    while parent is not None and parent is not facts.scopes.parents.get(loop):
        if isinstance(parent, (ast.FunctionDef, ast.Lambda)):
            return False  # which runs when it is called
        up, parent = parent, facts.scopes.parents.get(parent)
    block = getattr(parent, "body", ())
    return up in block and loop in block and block.index(up) < block.index(loop)


def _called(facts: Facts, method: ast.Attribute) -> bool:
    parent = facts.scopes.parents.get(method)
    return isinstance(parent, ast.Call) and parent.func is method

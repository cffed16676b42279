"""Objects that hold a model, and methods that read one: `ema.update()`, `self.update_target()`.

What a step changes is changed for them too, though their calls do not name it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..facts.arguments import given_to
from ..facts.nodes import walk
from ..facts.script import Facts, once_a_file

OF_MODULES = {"parameters", "named_parameters", "buffers", "named_buffers", "state_dict", "load_state_dict"}
Asks = Callable[[ast.AST], bool]


def reaches_modules(facts: Facts, call: ast.Call, changed: set[str], holds: Asks = lambda n: False) -> bool:
    """Whether a method call may read what is trained: by the object that has it, or in its body in this file.

    `holds`: whether a node reads what holds a part of it.
    """
    assert isinstance(call.func, ast.Attribute)
    modules = module_attributes(facts)
    root = call.func.value
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        if isinstance(root, ast.Attribute) and _made_with(_attribute_values(facts, root.attr), changed, modules):
            return True
        root = root.value
    if isinstance(root, ast.Name) and root.id != "self":
        scope = facts.scopes.scope_of(root).lookup(root.id)
        made = [facts.scopes.parents.get(s) for s in scope.stores.get(root.id, ())] if scope is not None else []
        if _made_with([m.value for m in made if isinstance(m, ast.Assign)], changed, modules):
            return True
    return _reads_modules(facts, call.func.attr, modules, holds, set())


def _made_with(values: list[ast.expr], changed: set[str], modules: set[str]) -> bool:
    """Whether an object was made with a model or an optimizer: `ema = EMA(model, 0.99)`."""
    for value in values:
        if isinstance(value, ast.Call):
            for a in given_to(value):
                if (isinstance(a, ast.Name) and a.id in changed) or (
                    isinstance(a, ast.Attribute) and a.attr in modules
                ):
                    return True
    return False


def _attribute_values(facts: Facts, name: str) -> list[ast.expr]:
    """What attributes of that name are given in this file."""
    made = [facts.scopes.parents.get(a) for a in facts.attributes.get(name, ()) if _is_set(a)]
    return [m.value for m in made if isinstance(m, ast.Assign)]


def _is_set(a: ast.Attribute) -> bool:
    return isinstance(a.ctx, ast.Store)


@once_a_file
def methods_of(facts: Facts, name: str) -> list[ast.FunctionDef]:
    """The methods of that name, of all classes of this file."""
    return [f for f in facts.walk(ast.FunctionDef) if f.name == name and facts.scopes.scope_of(f).is_class]


def _reads_modules(facts: Facts, method: str, modules: set[str], holds: Asks, seen: set[str]) -> bool:
    """Whether a method of that name, in a class of this file, or one that it calls, reads a module's attribute."""
    if method in seen:
        return False
    seen.add(method)
    for f in methods_of(facts, method):
        for n in walk(f, ast.Attribute):
            if n.attr in modules or n.attr in OF_MODULES or holds(n):
                return True
            if _reads_modules(facts, n.attr, modules, holds, seen):
                return True
    return False


def module_attributes(facts: Facts) -> set[str]:
    """The attributes that are called, or asked for what only modules have: `self.net(x)`, `self.net.parameters()`."""
    found: set[str] = set()
    for n in facts.walk(ast.Attribute):
        if n.attr in OF_MODULES and isinstance(n.value, ast.Attribute):
            found.add(n.value.attr)
    for c in facts.walk(ast.Call):
        called = c.func
        of_self = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self"
        if of_self and not methods_of(facts, called.attr):  # type: ignore[attr-defined]
            found.add(called.attr)  # type: ignore[attr-defined]
    return found

"""What keeps the functions that it is given, and is pickled with them: data sets, and what the file itself defines."""

from __future__ import annotations

import ast

from ..facts.arguments import argument
from ..facts.held import class_named, is_data_set
from ..facts.script import Facts


def _made(facts: Facts, node: ast.expr) -> ast.Call | None:
    """The call that gives a name its only value."""
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    given = facts.devices.assigned(node.id, scope) if scope is not None else None  # type: ignore[attr-defined]
    made = given[0] if given and len(given) == 1 else None
    return made if isinstance(made, ast.Call) else None


def is_kept_by(facts: Facts, call: ast.Call, node: ast.expr) -> bool:
    """`setattr(self, name, node)` in a module or a data set, `setattr(data, name, node)` of one."""
    if call.args[-1] is not node:
        return False
    holder = next((u for u in facts.scopes.ancestors(call) if isinstance(u, ast.ClassDef)), None)
    if isinstance(call.args[0], ast.Name) and call.args[0].id == "self":
        return holder in facts.classes.modules or is_data_set(facts, holder)
    return is_kept(facts, call.args[0])


def is_kept(facts: Facts, owner: ast.expr) -> bool:
    """Whether the owner of an attribute is shown to be a data set, which is pickled with it."""
    made = _made(facts, owner)
    return made is not None and is_data_set(facts, class_named(facts, made.func))


def is_of_torchvision(facts: Facts, call: ast.Call) -> bool:
    return (facts.names.resolve(call.func) or "").startswith("torchvision.datasets.")


def parameter_of(facts: Facts, call: ast.Call, node: ast.expr) -> tuple[ast.FunctionDef, str] | None:
    """The function of the file that a call gives something to, and the parameter; for a class, its `__init__`."""
    c = class_named(facts, call.func)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "__init__" and facts.classes.is_self(call.func.value):
        own = next((u for u in facts.scopes.ancestors(call) if isinstance(u, ast.ClassDef)), None)
        c = next((d for b in (own.bases if own else ()) if (d := class_named(facts, b)) is not None), None)
    if c is not None:
        f = facts.classes.methods(c).get("__init__")
    else:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        f = next((s for s in facts.tree.body if isinstance(s, ast.FunctionDef) and s.name == name), None)
    if not isinstance(f, ast.FunctionDef):
        return None
    params = facts.scopes.by_node[f].params
    name = next((n for n in params if argument(call, f, n, bound=c is not None) is node), "")
    return (f, name) if name else None

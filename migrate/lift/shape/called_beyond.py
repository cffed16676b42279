"""What other files of the project call: `exp.test()` of an exp of a class of this one, `evaluate(net)`.

Written into the loop, such a method would be gone from its class, and the function from its file.
"""

from __future__ import annotations

import ast
import re

from ...facts.arguments import is_static
from ...facts.scopes import Scope
from ...facts.script import Facts, facts_of, once_a_file
from ..loaders import values_of

# of networks, optimizers and schedulers, too: they have to be asked of what is shown to be an object of the class
OF_OTHERS = {"train", "eval", "step", "zero_grad", "forward", "backward"}


def is_taken(facts: Facts, f: ast.FunctionDef) -> bool:
    """Whether another file takes a function of this one."""
    return facts.taken is not None and f in facts.tree.body and facts.taken(f.name)


@once_a_file
def called_beyond(facts: Facts, owner: ast.ClassDef, name: str) -> bool:
    """Whether a file that names a class calls a method of that name, and of no object that is known to be another's."""
    speaks, calls = re.compile(rf"\b{re.escape(owner.name)}\b"), re.compile(rf"\.{re.escape(name)}\b")
    texts = dict.fromkeys([*(o.text for o in facts.others), *(facts.taken.texts if facts.taken is not None else ())])
    return any(_asks(text, owner.name, name) for text in texts if calls.search(text) and speaks.search(text))


def _asks(text: str, owner: str, name: str) -> bool:
    try:
        there = facts_of(text)
    except (SyntaxError, RecursionError):
        return True
    return any(_may_be_of(there, a.value, owner, name) for a in there.attributes.get(name, ()))


def _class_of_self(there: Facts, name: str, scope: Scope) -> ast.ClassDef | None:
    """The class whose method has a name as its own object. That the class itself was in that file says nothing."""
    f = scope.node
    if not isinstance(f, ast.FunctionDef) or is_static(f) or name in scope.stores:
        return None
    return there.classes.holder(f) if next(iter(scope.params), "") == name else None


def _may_be_of(there: Facts, node: ast.expr, owner: str, name: str) -> bool:
    values = [node]
    if isinstance(node, ast.Name):
        if there.names.resolve(node) is not None:
            return node.id == owner  # the class itself; not a module, torch.optim.step
        scope = there.scopes.scope_of(node).lookup(node.id)
        if scope is not None and (c := _class_of_self(there, node.id, scope)) is not None:
            return any(
                owner in (getattr(b, "id", ""), getattr(b, "attr", "")) for k in there.classes.above(c) for b in k.bases
            )
        values = values_of(there, node.id, scope) if scope is not None else []
    elif isinstance(node, ast.Attribute):
        values = list(there.devices.attribute_values.get(node.attr, ()))
    made = [v.func for v in values if isinstance(v, ast.Call)]
    if any(getattr(f, "id", getattr(f, "attr", "")) == owner for f in made):
        return True
    return isinstance(node, ast.Name) and len(made) < max(len(values), 1) and name not in OF_OTHERS

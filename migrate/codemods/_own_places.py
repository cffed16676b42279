"""T2: devices that are right as they stand: where a module is, by one of its parameters or buffers, or by a property.

device = self.betas.device
x = torch.randn(n, 3, device=device)
"""

from __future__ import annotations

import ast
import re

from ..facts.nodes import FUNCTIONS, walk
from ..facts.script import Facts
from ._tensor_names import is_named

OF_A_NETWORK = re.compile(r"(next\([\w.]+\.parameters\(\)\)|list\([\w.]+\.parameters\(\)\)\[0\])\.device")
PARAMETER = "torch.nn.Parameter"


def is_own_place(facts: Facts, where: ast.expr) -> bool:
    """Whether `self.device`, or a name, is the device of the module around, or of any network, where nothing trains."""
    if isinstance(where, ast.Name):
        return _of_tensors(facts, where)
    return ast.unparse(where) == "self.device" and has_device(facts, facts.names.nodes.class_of(where))


def has_device(facts: Facts, c: ast.ClassDef | None) -> bool:
    """Whether `self.device` is where the module is: one that a Trainer runs, or a property of its own tensors."""
    for d in facts.classes.above(c) if c is not None else ():
        if d in facts.classes.run_by_trainer:
            return True
        own = facts.classes.methods(d).get("device")
        if own is not None:
            returned = [r.value for r in walk(own, ast.Return) if r.value is not None]
            of_own = "parameters()" in ast.unparse(own) or any(_of_own_tensor(facts, r) for r in returned)
            return of_own and any(is_named(n, "property") for n in own.decorator_list)
    return False


def _of_tensors(facts: Facts, name: ast.Name) -> bool:
    """`device = next(self.parameters()).device`, `device = self.betas.device`"""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    given = facts.devices.assigned(name.id, scope) if scope is not None and name.id not in scope.params else None
    texts = {ast.unparse(v) for v in given or ()}
    if scope is None or len(texts) != 1:
        return False
    text = texts.pop()
    helps = isinstance(scope.node, ast.FunctionDef) and not _trains(scope.node)
    if text == "next(self.parameters()).device" or (helps and OF_A_NETWORK.fullmatch(text) is not None):
        return True
    return any(_of_own_tensor(facts, v) for v in given or ())


def _of_own_tensor(facts: Facts, where: ast.expr) -> bool:
    """`self.betas.device` of a parameter or a buffer, which nothing but its registration gives the module."""
    own = where.value if isinstance(where, ast.Attribute) and where.attr == "device" else None
    c = facts.names.nodes.class_of(where)
    if not (isinstance(own, ast.Attribute) and facts.classes.is_self(own.value)) or c not in facts.classes.modules:
        return False
    if (c, own.attr) in facts.buffers:
        return True
    if not any(isinstance(up, FUNCTIONS) for up in facts.scopes.ancestors(where)):
        return False
    values = [getattr(facts.scopes.statement_of(a), "value", None) for a in facts.stores_of(own.attr)]
    return all(isinstance(v, ast.Call) and facts.names.resolve(v.func) == PARAMETER for v in values)


def _trains(f: ast.FunctionDef) -> bool:
    """Whether a function has a training in it, before which nothing is placed."""
    return any(n.attr in ("backward", "step", "fit") for n in walk(f, ast.Attribute))

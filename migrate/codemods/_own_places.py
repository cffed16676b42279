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
DEPTH = 8  # of classes above one another
PARAMETER = "torch.nn.Parameter"


def is_own_place(facts: Facts, where: ast.expr) -> bool:
    """Whether `self.device`, or a name, is the device of the module around, or of any network, where nothing trains."""
    if isinstance(where, ast.Name):
        return _of_tensors(facts, where)
    return ast.unparse(where) == "self.device" and has_device(facts, _class_around(facts, where))


def has_device(facts: Facts, c: ast.ClassDef | None, depth: int = 0) -> bool:
    """Whether `self.device` is where the module is: one that a Trainer runs, or a property of its own tensors."""
    if c is None or c in facts.classes.run_by_trainer:
        return c is not None
    own = facts.classes.methods(c).get("device")
    if own is not None:
        returned = [r.value for r in walk(own, ast.Return) if r.value is not None]
        of_own = "parameters()" in ast.unparse(own) or any(_of_own_tensor(facts, r) for r in returned)
        return of_own and any(is_named(d, "property") for d in own.decorator_list)
    bases = {b.id for b in c.bases if isinstance(b, ast.Name)}
    above = (d for d in facts.classes.modules if d.name in bases and d is not c and depth < DEPTH)
    return any(has_device(facts, d, depth + 1) for d in above)


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
    c = _class_around(facts, where)
    if not (isinstance(own, ast.Attribute) and facts.classes.is_self(own.value)) or c not in facts.classes.modules:
        return False
    if (c, own.attr) in facts.buffers:
        return True
    if not any(isinstance(up, FUNCTIONS) for up in facts.scopes.ancestors(where)):
        return False
    values = [getattr(facts.scopes.statement_of(a), "value", None) for a in facts.stores_of(own.attr)]
    return all(isinstance(v, ast.Call) and facts.names.resolve(v.func) == PARAMETER for v in values)


def _class_around(facts: Facts, node: ast.AST) -> ast.ClassDef | None:
    return next((up for up in facts.scopes.ancestors(node) if isinstance(up, ast.ClassDef)), None)


def _trains(f: ast.FunctionDef) -> bool:
    """Whether a function has a training in it, before which nothing is placed."""
    return any(n.attr in ("backward", "step", "fit") for n in walk(f, ast.Attribute))

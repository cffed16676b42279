"""T3, what is told of: tensors that a module keeps in lists and dictionaries, or in ways that no buffer takes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import given_to
from ..facts.script import Facts
from ..facts.several import taken_apart
from ._apart import is_own

HOLDERS = {"list", "tuple", "dict"}


def holds(facts: Facts, value: ast.expr) -> bool:
    """A list, a tuple or a dictionary of tensors, at any depth."""
    if isinstance(value, (ast.List, ast.Tuple)):
        return any(holds(facts, e) or facts.tensors.is_tensor(e) for e in value.elts)
    if isinstance(value, ast.Dict):
        return any(holds(facts, e) or facts.tensors.is_tensor(e) for e in value.values)
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        return holds(facts, value.elt) or facts.tensors.is_tensor(value.elt)
    if isinstance(value, ast.DictComp):
        return holds(facts, value.value) or facts.tensors.is_tensor(value.value)
    if isinstance(value, ast.BinOp):
        return holds(facts, value.left) or holds(facts, value.right)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in HOLDERS:
        given = given_to(value)
        return any(holds(facts, a) or (value.func.id == "dict" and facts.tensors.is_tensor(a)) for a in given)
    return False


def filled(facts: Facts, s: ast.stmt) -> Iterator[str]:
    """`self.masks.append(torch.ones(3))`, `self.stats["mean"] = ...`, `self.a = self.b = torch.ones(3)`."""
    says = "holds tensors that do not move with the module: register each as a buffer"
    if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Attribute):
        f, given = s.value.func, s.value.args
        if f.attr == "append" and is_own(f.value) and given and facts.tensors.is_tensor(given[0]):
            yield f"`{facts.text.get(f.value)}` {says}"
        elif f.attr == "__setattr__" and given and facts.tensors.is_tensor(given[-1]) and _is_of_self(f, given):
            yield f"`{facts.short(s)}` keeps a tensor that does not move with the module"
    elif isinstance(s, ast.Assign) and facts.tensors.is_tensor(s.value):
        for t in s.targets:
            if isinstance(t, ast.Subscript) and _is_text(t.slice) and (is_own(t.value) or _is_vars(t.value)):
                yield f"`{facts.text.get(t.value)}` {says}"
            elif is_own(t):
                yield f"`{facts.text.get(t)}` is a tensor that does not move with the module"
    elif isinstance(s, ast.Assign) and isinstance(s.value, ast.Tuple):  # self.a, self.b = x.sqrt(), y.sqrt()
        for t in (t for t in s.targets if isinstance(t, ast.Tuple) and len(t.elts) == len(s.value.elts)):
            for one, value in zip(t.elts, s.value.elts, strict=True):
                if is_own(one) and facts.tensors.is_tensor(value):
                    yield f"`{facts.text.get(one)}` is a tensor that does not move with the module"
    elif isinstance(s, ast.Assign) and facts.tensors.is_tensor(taken_apart(facts, s.value)):
        for one in (e for t in s.targets if isinstance(t, (ast.Tuple, ast.List)) for e in t.elts if is_own(e)):
            yield f"`{facts.text.get(one)}` is a tensor that does not move with the module"


def _is_of_self(func: ast.Attribute, given: list[ast.expr]) -> bool:
    """`object.__setattr__(self, "a", x)`, `super().__setattr__("a", x)`."""
    if len(given) == 3:
        return isinstance(given[0], ast.Name) and given[0].id == "self"
    return len(given) == 2 and isinstance(func.value, ast.Call) and getattr(func.value.func, "id", "") == "super"


def _is_vars(node: ast.expr) -> bool:
    """`vars(self)`"""
    called = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "vars"
    return called and [getattr(a, "id", "") for a in node.args] == ["self"]  # type: ignore[attr-defined]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)

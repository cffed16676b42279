"""Methods of a script's plain classes that are called as those of tensors are: `def item(self): return 3`."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from .nodes import Function, walk

if TYPE_CHECKING:
    from .script import Facts


PYTHONS = ("object", "dict", "list", "tuple", "set", "str", "int", "float", "Exception")


def own_methods(facts: Facts, func: ast.Attribute) -> list[Function]:
    """The methods that a call of `func` may be one of: those of classes that derive from none but this file's, or
    from one of Python's own: `class Store(dict):`.
    """
    plain = (c for c in facts.walk(ast.ClassDef) if all(getattr(b, "id", "") in PYTHONS for b in c.bases))
    own = {c: m for c in plain if (m := facts.classes.methods(c).get(func.attr)) is not None}
    movers = facts.devices.own_movers
    above = [movers.above(c) for c in (movers.kinds(func.value) if own else ())]
    found = (next((m for c in cs if (m := facts.classes.methods(c).get(func.attr)) is not None), None) for cs in above)
    return [m for m in found if m is not None]


def copies_nothing(facts: Facts, func: ast.Attribute) -> bool:
    """Whether a call such as `x.item()` is one of the script's own, in which no tensor is read on the host."""
    methods = own_methods(facts, func)
    return bool(methods) and not any(_copies(n) for m in methods for n in walk(m))


def differentiates_nothing(facts: Facts, func: ast.expr) -> bool:
    """Whether `x.backward()` is a method of the script's own by that name alone: a tape that is wound back."""
    methods = own_methods(facts, func) if isinstance(func, ast.Attribute) else []
    return bool(methods) and not any(_may_differentiate(facts, n) for m in methods for s in m.body for n in walk(s))


def _may_differentiate(facts: Facts, n: ast.AST) -> bool:
    """Whether a node names what differentiates, or calls a function that may."""
    if isinstance(n, ast.Call) and not isinstance(n.func, ast.Attribute):
        return getattr(n.func, "id", "") not in dir(builtins)
    if isinstance(n, ast.Call) and facts.names.resolve(n.func) is not None:
        return True
    named = n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") if isinstance(n, ast.Name) else ""
    return named in ("backward", "autograd", "grad", "torch")


def _copies(n: ast.AST) -> bool:
    named = n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") if isinstance(n, ast.Name) else ""
    return named in ("item", "cpu", "numpy", "tolist", "float", "int", "bool", "torch")

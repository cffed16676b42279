"""T1: functions that move whatever they are given, of a list each element: they call themselves.

def to_device(data, device):
    if isinstance(data, (list, tuple)):
        return [to_device(x, device) for x in data]
    return data.to(device, non_blocking=True)
"""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts

ASK = {"isinstance", "hasattr", "torch.is_tensor", "type"}
MAKE = ("list", "tuple", "dict")


def moves_whatever(facts: Facts, f: ast.FunctionDef) -> bool:
    """Whether a function gives back what it is given first, moved where it can be, by each of its returns."""
    parameters = [*f.args.posonlyargs, *f.args.args]
    if not parameters or f.decorator_list or f.args.vararg or f.args.kwarg:
        return False
    x = parameters[0].arg
    moves = any(_is_moved(facts, call, x) for call in walk(f, ast.Call))
    return moves and x not in facts.scopes.by_node[f].stores and _gives_back(facts, f, f.body, x)


def calls_itself(f: ast.FunctionDef) -> bool:
    return any(isinstance(c.func, ast.Name) and c.func.id == f.name for c in walk(f, ast.Call))


def _gives_back(facts: Facts, f: ast.FunctionDef, block: list[ast.stmt], x: str) -> bool:
    for s in block:
        if isinstance(s, ast.If):
            if not _asks_kind(facts, s.test, x) or not all(_gives_back(facts, f, b, x) for b in (s.body, s.orelse)):
                return False
        elif isinstance(s, ast.Match):
            own = isinstance(s.subject, ast.Name) and s.subject.id == x
            if not own or not all(c.guard is None and _gives_back(facts, f, c.body, x) for c in s.cases):
                return False
        elif isinstance(s, ast.Return):
            if s.value is None or not _is_it(facts, f, s.value, x):
                return False
        elif not (isinstance(s, ast.Raise) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))):
            return False
    return True


def _asks_kind(facts: Facts, test: ast.expr, x: str) -> bool:
    """`isinstance(x, list)`, `torch.is_tensor(x)`, `hasattr(x, "to")`, `x is None`: a question about it alone."""
    calls = [facts.names.resolve(c.func) or ast.unparse(c.func) for c in walk(test, ast.Call)]
    return set(calls) <= ASK and any(n.id == x for n in walk(test, ast.Name))


def _is_it(facts: Facts, f: ast.FunctionDef, value: ast.expr, x: str) -> bool:
    if isinstance(value, ast.Name):
        return value.id == x
    if isinstance(value, ast.IfExp):
        ways = (value.body, value.orelse)
        return _asks_kind(facts, value.test, x) and all(_is_it(facts, f, way, x) for way in ways)
    return _is_moved(facts, value, x) or _of_each(f, value, x)


def _is_moved(facts: Facts, value: ast.expr, x: str) -> bool:
    if not isinstance(value, ast.Call):
        return False
    moved = facts.devices.moved(value)
    alone = len(facts.devices.device_arguments(value)) >= len(value.args)  # no dtype beside the device
    return alone and isinstance(moved, ast.Name) and moved.id == x


def _of_each(f: ast.FunctionDef, value: ast.expr, x: str) -> bool:
    """`[f(y, device) for y in x]`, `{k: f(v, device) for k, v in x.items()}`, `tuple(f(y) for y in x)`."""
    if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
        if not (ast.unparse(value.func) in MAKE or ast.unparse(value.func) == f"type({x})"):
            return False
        value = value.args[0]
    if not isinstance(value, (ast.ListComp, ast.GeneratorExp, ast.DictComp)) or len(value.generators) != 1:
        return False
    part = value.generators[0]
    each = value.value if isinstance(value, ast.DictComp) else value.elt
    if part.ifs or part.is_async or not isinstance(each, ast.Call) or ast.unparse(each.func) != f.name or not each.args:
        return False
    if isinstance(value, ast.DictComp):
        pair = f"({ast.unparse(value.key)}, {ast.unparse(each.args[0])})"
        return ast.unparse(part.target) == pair and ast.unparse(part.iter) == f"{x}.items()"
    return ast.unparse(part.target) == ast.unparse(each.args[0]) and ast.unparse(part.iter) == x

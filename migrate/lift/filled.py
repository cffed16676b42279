"""Tensors that the passes over batches fill: `total = torch.zeros(1)` above the loop, `total += loss.detach()` in it.

In a script that names no device they are made on the CPU, where nothing of the model's can be added to them later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..facts.nodes import LOOPS, walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..facts.tensor_makers import TAKES_DEVICE, is_open
from .collected import filled_in
from .nodes import local_function

# what is a number already, or on the CPU
NUMBERS = {"item", "tolist", "size", "numel", "nelement", "dim", "cpu", "numpy"}
SIZES = {"shape", "ndim"}
BUILTINS = {"print", "float", "int", "len", "str", "round", "bool", "list", "tuple", "sum", "isinstance"}


def filled(facts: Facts, made: ast.Call, body: Iterable[ast.stmt]) -> bool:
    """Whether a tensor, made of no other and on no device that is named, takes in others in these statements."""
    if not made.args or not is_open(facts, made) or facts.devices.hosts.names_others:
        return False
    target = _target(facts, made)
    home = facts.scopes.scope_of(target).lookup(target.id) if target is not None else None
    if target is None or home is None:
        return False
    return any(not _is_number(facts, v, 0) for s in body for v in _taken_in(facts, s, target.id, home))


def read_by_torch(facts: Facts, made: ast.Call) -> bool:
    """Whether nothing but torch and what shows numbers is given the tensor: NumPy, or who knows what, is not."""
    target = _target(facts, made)
    home = facts.scopes.scope_of(target).lookup(target.id) if target is not None else None
    for r in facts.scopes.reads(target.id, home) if target is not None and home is not None else ():
        up = facts.scopes.parents.get(r)
        up = facts.scopes.parents.get(up) if isinstance(up, (ast.keyword, ast.Starred)) else up
        if isinstance(up, ast.Call) and up.func is not r:
            known = (facts.names.resolve(up.func) or "").startswith("torch.")
            if not known and getattr(up.func, "id", getattr(up.func, "attr", "")) not in BUILTINS:
                return False
    return True


def filled_in_loops(facts: Facts) -> Iterator[ast.Call]:
    """Tensors that functions of the script fill in loops of their own, in which a network is called."""
    for made in facts.walk(ast.Call):
        s = facts.scopes.statement_of(made)
        block = facts.scopes.block_of(s) if facts.names.resolve(made.func) in TAKES_DEVICE else []
        below = block[block.index(s) + 1 :] if s in block else []
        loops = [n for b in below for n in walk(b) if isinstance(n, LOOPS)]
        if any(calls_model(facts, loop.body) and filled(facts, made, loop.body) for loop in loops):
            yield made


def calls_model(facts: Facts, body: Iterable[ast.stmt]) -> bool:
    calls = (c for s in body for c in walk(s, ast.Call))
    return any(facts.loops.is_model_call(c) for c in calls)


def _target(facts: Facts, made: ast.Call) -> ast.Name | None:
    """`total` of `total = torch.zeros(1)`, and of `total, n = torch.zeros(1), 0`."""
    up = facts.scopes.parents.get(made)
    s = facts.scopes.parents.get(up) if isinstance(up, ast.Tuple) else up
    if not (isinstance(s, ast.Assign) and len(s.targets) == 1):
        return None
    target: ast.expr | None = s.targets[0]
    if isinstance(up, ast.Tuple):
        same = isinstance(target, ast.Tuple) and up is s.value and len(target.elts) == len(up.elts)
        target = target.elts[up.elts.index(made)] if same and isinstance(target, ast.Tuple) else None
    elif s.value is not made:
        return None
    return target if isinstance(target, ast.Name) else None


def _taken_in(facts: Facts, s: ast.stmt, name: str, home: Scope) -> Iterator[ast.expr]:
    """What a statement puts into the tensor of a name: `t += x`, `t[0] += x`, `t = t + x`, `t.add_(x)`, `add(t, x)`."""

    def is_it(node: ast.AST) -> bool:
        while isinstance(node, ast.Subscript):
            node = node.value
        return isinstance(node, ast.Name) and node.id == name and facts.scopes.scope_of(node).lookup(name) is home

    for n in walk(s):
        anew = isinstance(n, ast.Assign) and any(map(is_it, n.targets)) and any(map(is_it, walk(n.value)))
        if isinstance(n, (ast.Assign, ast.AugAssign)) and (anew or is_it(getattr(n, "target", n))):
            yield n.value
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr.endswith("_"):
            yield from n.args if is_it(n.func.value) else ()
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and any(map(is_it, n.args)):
            f = local_function(facts, n.func)
            into = filled_in(facts, f, n) if f is not None else None
            yield from (a for a in n.args if into is not None and is_it(into) and not is_it(a))


def _is_number(facts: Facts, node: ast.expr, depth: int) -> bool:
    """Whether a value is a number, or on the CPU, as far as it shows."""
    if isinstance(node, (ast.Constant, ast.Compare, ast.BoolOp)):
        return not isinstance(node, ast.Compare) or all(_is_number(facts, n, depth) for n in _sides(node))
    if isinstance(node, ast.BinOp):
        return _is_number(facts, node.left, depth) and _is_number(facts, node.right, depth)
    if isinstance(node, ast.UnaryOp):
        return _is_number(facts, node.operand, depth)
    if isinstance(node, ast.Subscript):
        return _is_number(facts, node.value, depth)
    if isinstance(node, ast.Attribute):
        return node.attr in SIZES
    if isinstance(node, ast.Call):
        return _gives_number(facts, node, depth)
    if isinstance(node, ast.Name) and depth < 5:
        home = facts.scopes.scope_of(node).lookup(node.id)
        given = facts.devices.assigned(node.id, home) if home is not None else None
        return bool(given) and all(_is_number(facts, v, depth + 1) for v in given or ())
    return False


def _gives_number(facts: Facts, call: ast.Call, depth: int) -> bool:
    """`len(x)`, `loss.item()`, `x.to("cpu")`, `x.cpu().float()`, `numpy.mean(x)`"""
    if not isinstance(call.func, ast.Attribute):
        return getattr(call.func, "id", "") in BUILTINS
    if (facts.names.resolve(call.func) or "").startswith("numpy."):
        return True
    where = facts.devices.device_arguments(call) if call.func.attr == "to" else ()
    host = any(facts.devices.is_host(w.value if isinstance(w, ast.keyword) else w) for w in where)
    return call.func.attr in NUMBERS or host or _is_number(facts, call.func.value, depth)


def _sides(node: ast.Compare) -> list[ast.expr]:
    return [node.left, *node.comparators]

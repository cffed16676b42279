"""The learning rate, read after the step: `optimizer.param_groups[0]["lr"]` is what it was before the step."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from .nodes import local_function, walk_here
from .optimizers import is_torch_optimizer
from .recipe import Optimization

GROUPS = "param_groups"
OF_A_GROUP = {"lr", "initial_lr", "momentum", "weight_decay", "betas"}


def rates_read(facts: Facts, s: ast.stmt, o: Optimization, scheduled: bool) -> set[ast.AST]:
    """The nodes of a statement after the step that read a rate alone; none where a schedule was stepped in between."""
    found: set[ast.AST] = set()
    for n in walk(s, ast.Name):
        if n.id in o.optimizers and not scheduled and is_torch_optimizer(facts, n, n.id):
            up = facts.scopes.parents.get(n)
            f = local_function(facts, up.func) if isinstance(up, ast.Call) and isinstance(up.func, ast.Name) else None
            if _is_rate(facts, n):
                found.add(n)
            elif f is not None and up.args == [n] and not up.keywords and _gives_rate(facts, f):  # type: ignore[union-attr]
                found |= {n, up.func}  # type: ignore[union-attr]
    return found


def _is_rate(facts: Facts, n: ast.Name) -> bool:
    """`n.param_groups[0]["lr"]`, and `n.state_dict()["param_groups"][0]["lr"]`."""
    parents = facts.scopes.parents
    up = parents.get(n)
    if not isinstance(up, ast.Attribute):
        return False
    if up.attr == "state_dict":
        call = parents.get(up)
        up = parents.get(call) if isinstance(call, ast.Call) and call.func is up else None
        groups = isinstance(up, ast.Subscript) and isinstance(up.slice, ast.Constant) and up.slice.value == GROUPS
    else:
        groups = up.attr == GROUPS
    of_one = parents.get(up) if groups and up is not None else None
    one = isinstance(of_one, ast.Subscript) and isinstance(of_one.slice, (ast.Constant, ast.UnaryOp))
    return one and _is_of_a_group(parents.get(of_one))  # type: ignore[arg-type]


def _is_of_a_group(read: ast.AST | None) -> bool:
    asks = isinstance(read, ast.Subscript) and isinstance(read.ctx, ast.Load) and isinstance(read.slice, ast.Constant)
    return asks and read.slice.value in OF_A_GROUP  # type: ignore[union-attr]


def _gives_rate(facts: Facts, f: ast.FunctionDef) -> bool:
    """`def get_lr(optimizer)` that goes through the groups, and reads nothing but a rate of them."""
    if len(f.args.args) != 1 or f.args.vararg or f.args.kwarg or f.decorator_list:
        return False
    own, groups = f.args.args[0].arg, set()
    for n in (n for s in f.body for n in walk_here(s)):
        if isinstance(n, ast.For) and isinstance(n.target, ast.Name) and ast.unparse(n.iter) == f"{own}.{GROUPS}":
            groups.add(n.target.id)
    for n in (n for s in f.body for n in walk(s)):
        if isinstance(n, (ast.Call, ast.Global, ast.Nonlocal, ast.FunctionDef, ast.Lambda)):
            return False
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
            up = facts.scopes.parents.get(n)
            listed = (
                isinstance(up, ast.Attribute) and ast.unparse(up) == f"{own}.{GROUPS}" and _is_gone_through(facts, up)
            )
            if not (listed or (n.id == own and _is_rate(facts, n)) or (n.id in groups and _is_of_a_group(up))):
                return False
    return True


def _is_gone_through(facts: Facts, groups: ast.Attribute) -> bool:
    up = facts.scopes.parents.get(groups)
    return isinstance(up, ast.For) and up.iter is groups

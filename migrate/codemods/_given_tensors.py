"""T3: parameters that a module keeps where they were moved to: `self.adj = adj.cuda()`, in the ways it is written."""

from __future__ import annotations

import ast

from ..facts.effects import only_asks
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.tensor_methods import METHODS, root
from ._tensor_names import handed_to
from ._without_moves import plain

OF_MODULES_TOO = {"to", "cuda", "cpu", "float", "double", "half", "bfloat16", "type"}  # methods of both
DEPTH = 3  # of functions that hand it on


def given(facts: Facts, value: ast.expr | None) -> ast.Name | None:
    """The adj of `adj.cuda()`, of `adj.cuda() if on else adj`, and of `adj` where `adj = adj.cuda()` stands above."""
    if isinstance(value, ast.Call):
        return _moved(facts, value)
    if isinstance(value, ast.IfExp):
        return _of_choice(facts, value)
    if not isinstance(value, ast.Name):
        return None
    scope = facts.scopes.scope_of(value)
    bound = [facts.scopes.parents.get(n) for n in scope.stores.get(value.id, ())] if value.id in scope.params else []
    moved = [n for s in bound if (n := _only_moved(facts, s)) is not None and n.id == value.id]
    return value if moved and all(_sets_anew(s, value.id) for s in bound) else None


def same_anywhere(facts: Facts, choice: ast.IfExp) -> bool:
    """Whether the two values of a choice are one but for where they are, and asking for it does nothing else."""
    return only_asks(facts.names, choice.test) and plain(facts, choice.body) == plain(facts, choice.orelse)


def _moved(facts: Facts, call: ast.Call) -> ast.Name | None:
    """The w of `w.float().cuda()`, which is a parameter."""
    inner = facts.devices.moved(call)
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        inner = inner.func.value
    return inner if isinstance(inner, ast.Name) and inner.id in facts.scopes.scope_of(inner).params else None


def _of_choice(facts: Facts, choice: ast.IfExp) -> ast.Name | None:
    kept = [(b, _moved(facts, b) if isinstance(b, ast.Call) else b) for b in (choice.body, choice.orelse)]
    moved = [n for b, n in kept if isinstance(n, ast.Name) and n is not b]
    every = {n.id if isinstance(n, ast.Name) else None for _, n in kept}
    return moved[0] if moved and len(every) == 1 else None


def _only_moved(facts: Facts, s: ast.AST | None) -> ast.Name | None:
    if not isinstance(s, ast.Assign) or len(s.targets) != 1 or isinstance(s.value, ast.Name):
        return None
    return given(facts, s.value)


def _sets_anew(s: ast.AST | None, name: str) -> bool:
    """`adj = adj.cuda()`, `adj = adj.float()`: what a parameter is given is computed from it alone."""
    if not isinstance(s, ast.Assign) or len(s.targets) != 1 or isinstance(s.value, ast.Name):
        return False
    values = [s.value.body, s.value.orelse] if isinstance(s.value, ast.IfExp) else [s.value]
    roots = [root(v) for v in values]
    return all(n is not None and n.id == name for n in roots)


def counted_with(facts: Facts, c: ast.ClassDef, name: str) -> bool:
    """Whether a class computes with an attribute as with a tensor, or hands it on to what does."""
    own = (a for a in walk(c, ast.Attribute) if a.attr == name and facts.classes.is_self(a.value))
    return any(_counts(facts, a, 0) for a in own if isinstance(a.ctx, ast.Load))


def _counts(facts: Facts, n: ast.expr, depth: int) -> bool:
    child: ast.AST = n
    up = facts.scopes.parents.get(n)
    while isinstance(up, ast.Subscript) and up.value is child:  # self.table[i]
        child, up = up, facts.scopes.parents.get(up)
    if isinstance(up, (ast.BinOp, ast.UnaryOp)):
        return True
    if isinstance(up, ast.Attribute) and up.attr in METHODS - OF_MODULES_TOO:
        return True
    up = facts.scopes.parents.get(up) if isinstance(up, (ast.keyword, ast.List, ast.Tuple)) else up
    if not isinstance(up, ast.Call) or up.func is child:
        return False
    full = facts.names.resolve(up.func)
    if full is not None and full.startswith(("torch.nn.functional.", "torch.")) and full.count(".") in (1, 3):
        return True
    f = next(facts.scopes.functions_around(up), None)
    handed = handed_to(facts, f, up, lambda value: value is n) if f is not None and depth < DEPTH else ()
    return any(
        _counts(facts, read, depth + 1)
        for g, own in handed
        for read in facts.scopes.reads(own, facts.scopes.by_node[g])
        if own not in facts.scopes.by_node[g].stores
    )

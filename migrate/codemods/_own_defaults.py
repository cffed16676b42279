"""Defaults that are made where a lambda stands: `lambda x, d=d: x * d` in a loop takes what `d` is in that round.

They are bound like what it takes from around it, where its caller is known to give no argument in their place.
"""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from ._bound_names import unsteady

# how many arguments the callers of what is pickled give
TAKES = {"_collate_fn": 1, "_worker_init_fn": 1, "_lr_lambda": 1, "_transform": 1, "_target_transform": 1}
TAKEN_BY_HOOKS = {"register_forward_pre_hook": 2, "register_forward_hook": 3, "register_full_backward_hook": 3,
                  "register_backward_hook": 3}  # fmt: skip


def own_defaults(facts: Facts, node: ast.Lambda, base: str) -> dict[str, str] | None:
    """What its defaults are made of, by their names, as far as they are made anew; None where that cannot be kept."""
    top = top_of(facts, node)
    if isinstance(top, (ast.Assign, ast.AnnAssign, ast.Expr)) and facts.scopes.scope_of(node) is facts.scopes.module:
        line = (top.end_lineno or top.lineno) + 1  # made once, here or right above
    else:
        line = top.lineno
    given = [*node.args.posonlyargs, *node.args.args]
    first = len(given) - len(node.args.defaults)
    own = {a.arg: d for a, d in zip(given[first:], node.args.defaults, strict=True) if unsteady(facts, [d], line)}
    if unsteady(facts, [d for d in node.args.kw_defaults if d is not None], line):
        return None
    if not own:
        return {}
    if first != _taken(facts, node, base) or node.args.posonlyargs:
        return None
    if any(isinstance(n, (ast.Lambda, ast.NamedExpr)) for d in own.values() for n in walk(d)):
        return None
    return {name: facts.text.get(d) for name, d in own.items()}


def without(facts: Facts, node: ast.Lambda, own: dict[str, str]) -> str:
    """Its parameters but for those that are bound."""
    given = node.args.args
    first = len(given) - len(node.args.defaults)
    defaults = [None] * first + [f"={facts.text.get(d)}" for d in node.args.defaults]
    pairs = zip(given, defaults, strict=True)
    return ", ".join(f"{a.arg}{default or ''}" for a, default in pairs if a.arg not in own)


def _taken(facts: Facts, node: ast.expr, base: str) -> int | None:
    """How many arguments it is called with, where it is given to a call by itself."""
    up = facts.scopes.parents.get(node)
    while isinstance(up, (ast.keyword, ast.List, ast.Tuple, ast.Dict, ast.IfExp, ast.BoolOp, ast.ListComp)):
        up = facts.scopes.parents.get(up)
    if not isinstance(up, ast.Call) or facts.names.resolve(up.func) == "functools.partial":
        return None
    hook = up.func.attr if isinstance(up.func, ast.Attribute) else ""
    return TAKEN_BY_HOOKS.get(hook) if base == "_hook" else TAKES.get(base)


def top_of(facts: Facts, node: ast.AST) -> ast.stmt:
    """The statement of the module that holds it."""
    last: ast.AST = node
    for up in facts.scopes.ancestors(node):
        if up is facts.tree:
            break
        last = up
    assert isinstance(last, ast.stmt)
    return last


def first_line(s: ast.stmt) -> int:
    """Where a statement begins, its decorators among it."""
    return min([s.lineno, *(d.lineno for d in getattr(s, "decorator_list", ()))])

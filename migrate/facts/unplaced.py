"""Before a lifted loop no network has been placed yet: what one is given there is to be on the CPU, as it is.

`writer.add_graph(net, torch.rand(1, 3, 32, 32).to(device))`, `x = x.cuda()` above `profile(net, inputs=(x,))`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .nodes import FUNCTIONS, LOOPS, Loop, walk

if TYPE_CHECKING:
    from .script import Facts

OF_NETWORKS = ("parameters", "named_parameters", "train", "eval", "state_dict", "load_state_dict")
ASKS = ("shape", "size", "dim", "ndim", "dtype", "numel")  # where a tensor is makes no difference
HOLDS = ast.Tuple | ast.List | ast.Dict | ast.Starred | ast.keyword


def meets_unplaced(facts: Facts, call: ast.Call) -> bool:
    """Whether what a call moves, or makes somewhere, is only read by networks of the script before its loop."""
    s = facts.scopes.statement_of(call)
    if not facts.lifting or not _before_the_loop(facts, s):
        return False
    if _given_to_network(facts, call):
        return True
    if not (
        isinstance(s, ast.Assign) and s.value is call and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)
    ):
        return False
    name = s.targets[0].id
    scope = facts.scopes.scope_of(s.targets[0]).lookup(name)
    reads = list(facts.scopes.reads(name, scope)) if scope is not None else []
    return any(_given_to_network(facts, r) for r in reads) and all(_is_harmless(facts, r) for r in reads)


def _is_harmless(facts: Facts, read: ast.Name) -> bool:
    up = facts.scopes.parents.get(read)
    if isinstance(up, ast.Attribute) and up.attr in ASKS:
        return True
    if not _before_the_loop(facts, facts.scopes.statement_of(read)):
        return False
    call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) else None
    return _given_to_network(facts, read) or (isinstance(call, ast.Call) and facts.devices.moved(call) is read)


def _before_the_loop(facts: Facts, s: ast.stmt) -> bool:
    """Whether a statement runs once, above the first loop of its function that trains."""
    around: ast.AST = facts.tree
    for up in facts.scopes.ancestors(s):
        if isinstance(up, (*LOOPS, ast.ClassDef)):
            return False
        if isinstance(up, FUNCTIONS):
            around = up
            break
    key = (_before_the_loop, around)
    if key not in facts.answers:
        facts.answers[key] = next((n.lineno for n in _loops_of(facts, around) if _trains(facts, n)), 0)
    return bool(s.lineno < facts.answers[key])


def _loops_of(facts: Facts, around: ast.AST) -> list[Loop]:
    """A function's own loops, or those of the file's own statements, as they stand below one another."""
    own = [n for n in walk(around) if isinstance(n, LOOPS) and _function_of(facts, n) is around]
    return sorted(own, key=lambda n: n.lineno)


def _function_of(facts: Facts, node: ast.AST) -> ast.AST:
    return next((u for u in facts.scopes.ancestors(node) if isinstance(u, FUNCTIONS)), facts.tree)


def _trains(facts: Facts, node: ast.AST, depth: int = 3) -> bool:
    """Whether backward is called in it, or in what it calls."""
    for call in (n for n in walk(node) if isinstance(n, ast.Call)):
        f = call.func
        if isinstance(f, ast.Attribute) and f.attr == "backward":
            return True
        called = facts.devices.function_of(call) if depth else None
        if called is not None and _trains(facts, called, depth - 1):
            return True
    return False


def _given_to_network(facts: Facts, node: ast.AST) -> bool:
    """`net(x)`, `net.encode(x)`, `summary(net, [x])`"""
    child, up = node, facts.scopes.parents.get(node)
    while isinstance(up, HOLDS):
        child, up = up, facts.scopes.parents.get(up)
    if not isinstance(up, ast.Call) or child is up.func:
        return False
    f = up.func
    if any(_is_network(facts, n) for n in ([f, f.value] if isinstance(f, ast.Attribute) else [f])):
        return True
    called = ast.unparse(f).rpartition(".")[2]
    keeps = called[:1].isupper()  # an object may keep it until the network has moved
    return not keeps and any(_is_network(facts, a) for a in (*up.args, *(k.value for k in up.keywords)))


def _is_network(facts: Facts, node: ast.expr) -> bool:
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    name = ast.unparse(node)
    return any(ast.unparse(a.value) == name for m in OF_NETWORKS for a in facts.attributes.get(m, ()))

"""Whether a condition asks the machine for CUDA: `if use_cuda:` after `use_cuda = torch.cuda.is_available()`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .devices import AVAILABILITY
from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts

WORDS = sorted({full.rsplit(".", 1)[-1] for full in AVAILABILITY})
DEPTH = 4  # of names for one another


def asks_machine(facts: Facts, test: ast.expr) -> bool:
    """By itself, or by a name or an attribute that is given what asks: `args.cuda = args.cuda and is_available()`."""
    return any(word in facts.text.text for word in WORDS) and _asks(facts, test, 0)


def _asks(facts: Facts, test: ast.expr, depth: int) -> bool:
    for node in walk(test):
        if facts.names.resolve(node) in AVAILABILITY:
            return True
        if depth < DEPTH and any(_asks(facts, value, depth + 1) for value in _values(facts, node)):
            return True
    return False


def _values(facts: Facts, node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Name):
        scope = facts.scopes.scope_of(node).lookup(node.id)
        stores = scope.stores.get(node.id, []) if scope is not None else []
    elif isinstance(node, ast.Attribute):
        named = ast.unparse(node)
        same = (a for a in facts.attributes.get(node.attr, ()) if ast.unparse(a) == named)
        stores = [a for a in same if isinstance(a.ctx, ast.Store)]
    else:
        return []
    given = (facts.scopes.parents.get(store) for store in stores)
    return [s.value for s in given if isinstance(s, ast.Assign)]


def where_cuda_is(facts: Facts, place: ast.expr) -> bool:
    """`"cuda" if torch.cuda.is_available() else "cpu"`: what is left goes there on any machine."""
    if not (isinstance(place, ast.IfExp) and isinstance(place.test, ast.Call)):
        return False
    named = [n.value for n in (place.body, place.orelse) if isinstance(n, ast.Constant)]
    return named == ["cuda", "cpu"] and facts.names.resolve(place.test.func) == "torch.cuda.is_available"

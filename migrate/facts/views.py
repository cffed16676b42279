"""Tensors of a model that a script keeps before it trains: what `state_dict()` gives, `emb.weight[0]`, `buffers()`.

They share the memory of the weights. A Trainer that places the model gives the weights other memory, and what was kept
is the model's no more: an average would be taken of weights that nothing trains.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .copies import COPIES, OF_MODULES, before_training, last_name
from .nodes import walk
from .script import Facts
from .tensor_methods import VIEW_METHODS

VIEWS = {"state_dict", "buffers", "named_buffers"}  # parameters themselves stay the model's: only their data is another
HOLDS = {"list", "tuple", "dict", "OrderedDict"}  # keep what they are given as it is
DETACHED = {"data"}
WEIGHTS = {"weight", "bias"}


def views_of_weights(facts: Facts) -> Iterator[ast.expr]:
    """The expressions, one after another, that are kept where they run before the training loop."""
    for name in sorted(VIEWS & facts.attributes.keys()):
        for call in facts.calls_of(name):
            if _is_kept(facts, call) and before_training(facts, call):
                yield call
    for name in sorted(WEIGHTS & facts.attributes.keys()):
        for weight in facts.attributes[name]:
            view = _view_of(facts, weight)
            if view is not weight and _is_kept(facts, view) and before_training(facts, view):
                yield view
    comprehensions: list[ast.ListComp | ast.DictComp] = [*facts.walk(ast.ListComp), *facts.walk(ast.DictComp)]
    for made in comprehensions:
        element = made.value if isinstance(made, ast.DictComp) else made.elt
        if not (_goes_through_weights(made.generators) and _is_detached(element)):
            continue
        if _is_kept(facts, made) and before_training(facts, made):
            yield made


def _view_of(facts: Facts, weight: ast.expr) -> ast.expr:
    """`net.emb.weight.data[0]` of its `net.emb.weight`, which stays the model's own."""
    node: ast.AST = weight
    while True:
        up = facts.scopes.parents.get(node)
        called = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) else None
        if isinstance(up, ast.Attribute) and up.attr in VIEW_METHODS and isinstance(called, ast.Call):
            node = called
        elif (isinstance(up, ast.Attribute) and up.attr in DETACHED) or (
            isinstance(up, ast.Subscript) and up.value is node
        ):
            node = up
        else:
            return node  # type: ignore[return-value]


def _goes_through_weights(generators: list[ast.comprehension]) -> bool:
    calls = (c for g in generators for c in walk(g.iter, ast.Call))
    return any(last_name(c.func) in OF_MODULES for c in calls)


def _is_detached(node: ast.expr) -> bool:
    """`p.data`, `p.detach()`; not `p.clone().detach()`, which has memory of its own"""
    if any(last_name(n.func) in COPIES for n in walk(node, ast.Call)):
        return False
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "detach"
    return isinstance(node, ast.Attribute) and node.attr in DETACHED


def _is_kept(facts: Facts, node: ast.expr) -> bool:
    """`self.params = list(model.state_dict().values())`, or by a name that a training loop reads."""
    up = facts.scopes.parents.get(node)
    while True:
        if (isinstance(up, ast.Attribute) and up.attr in ("values", "items")) or _holds(up, node):
            node, up = up, facts.scopes.parents.get(up)  # type: ignore[assignment, arg-type]
        elif isinstance(up, ast.Call) and up.func is node:
            node, up = up, facts.scopes.parents.get(up)
        else:
            break
    if not isinstance(up, ast.Assign) or up.value is not node or len(up.targets) != 1:
        return False
    target = up.targets[0]
    if isinstance(target, ast.Attribute):
        return True
    scope = facts.scopes.scope_of(target).lookup(target.id) if isinstance(target, ast.Name) else None
    if not isinstance(target, ast.Name) or scope is None or len(scope.stores.get(target.id, ())) != 1:
        return False
    return any(_works_with(facts, read) for read in facts.scopes.reads(target.id, scope))


def _holds(up: ast.AST | None, node: ast.expr) -> bool:
    return isinstance(up, ast.Call) and up.args[:1] == [node] and last_name(up.func) in HOLDS


def _works_with(facts: Facts, read: ast.Name) -> bool:
    """In a loop that trains, and not only to be loaded into a model, saved or counted."""
    up = facts.scopes.parents.get(read)
    used = (
        isinstance(up, ast.Call)
        and read in up.args
        and last_name(up.func) in ("load_state_dict", "save", "len", "deepcopy")
    )
    return not used and any(up in facts.loops.hot_loops for up in facts.scopes.ancestors(read))

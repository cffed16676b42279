"""Whether `net.zero_grad()` reaches all that an optimizer trains: the Trainer zeroes what the optimizer has.

optimizer = SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
encoder.zero_grad()  # the decoder's gradients pile up
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import given_to
from ..facts.gone_through import gone_through
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..facts.wrapped import CONVERTERS, WRAPPERS
from .loaders import values_of
from .nodes import is_call_of
from .optimizers import attribute_values, is_optimizer_name, makers

ADDS = ("append", "extend")
OF_WEIGHTS = ("parameters", "named_parameters")
GIVE_ITSELF = set("to cuda cpu eval train float half double bfloat16 requires_grad_ apply type share_memory".split())
WRAPPED = WRAPPERS | CONVERTERS | {"torch.compile", "torch.jit.script"}
Path = tuple[object, ...]  # where a value was made, and the names that lead to the part of it


def zeroes_all(facts: Facts, network: ast.expr, at: ast.AST, optimizer: str) -> bool:
    """Whether all that the optimizer of a name was made with lies in the network, as far as is seen."""
    zeroed = _paths(facts, network, parts=True)
    for call in makers(facts, at, optimizer):
        if not is_optimizer_name(facts.names.resolve(call.func) or ""):
            continue
        if "add_param_group" in facts.attributes:
            return False
        given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "params"), None)
        if given is not None and not all(_lies_in(_paths(facts, o), zeroed) for o in _owners(facts, given)):
            return False
    return True


def _owners(facts: Facts, given: ast.expr, depth: int = 0) -> list[ast.expr]:
    """What the parameters given to an optimizer are of; a tensor in a list is its own."""
    if isinstance(given, ast.Name) and depth < 4:
        scope = facts.scopes.scope_of(given).lookup(given.id)
        if scope is None:
            return []
        began = facts.devices.assigned(given.id, scope) or values_of(facts, given.id, scope)
        return [*(o for v in began for o in _owners(facts, v, depth + 1)), *_added(facts, given, scope)]
    found: list[ast.expr] = []
    for n in walk(given):
        if isinstance(n, ast.Call) and any(is_call_of(n, method) for method in OF_WEIGHTS):
            found += _each(facts, n.func.value)  # type: ignore[attr-defined]
        elif isinstance(n, (ast.List, ast.Tuple)) and isinstance(n.ctx, ast.Load):
            found += [e for e in n.elts if isinstance(e, (ast.Name, ast.Attribute))]
    return found or [o for n in walk(given, ast.Call) for o in _asked(facts, n)]


def _each(facts: Facts, owner: ast.expr) -> list[ast.expr]:
    """The networks of a loop that is written out: `for net in (encoder, decoder):`."""
    over = gone_through(facts, owner) if isinstance(owner, ast.Name) else None
    return over.elts if isinstance(over, (ast.Tuple, ast.List)) else [owner]


def _added(facts: Facts, given: ast.Name, scope: Scope) -> Iterator[ast.expr]:
    """What a list of weights gets: `weights += decoder.parameters()`, `weights.extend(...)`, `weights.append(w)`."""
    stores = (facts.scopes.parents.get(n) for n in scope.stores.get(given.id, ()))
    for s in (s for s in stores if isinstance(s, ast.AugAssign)):
        yield from _owners(facts, s.value, 1)
    for read in facts.scopes.reads(given.id, scope):
        up = facts.scopes.parents.get(read)
        call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) else None
        if isinstance(up, ast.Attribute) and up.attr in ADDS and isinstance(call, ast.Call) and call.func is up:
            tensors = [a for a in call.args if isinstance(a, (ast.Name, ast.Attribute)) and up.attr == "append"]
            yield from tensors or (o for a in call.args for o in _owners(facts, a, 1))


def _asked(facts: Facts, call: ast.Call) -> Iterator[ast.expr]:
    """The networks that are asked for what to train: `net.groups()`, `groups_of(net, lr)`."""
    if isinstance(call.func, ast.Attribute) and facts.names.resolve(call.func) is None:
        yield call.func.value
    own = {c.name for c in facts.classes.modules}
    for a in given_to(call):
        made = (path[0] for path in _paths(facts, a) if isinstance(path[0], ast.Call))
        if any(facts.placed.is_module(m) or getattr(m.func, "id", None) in own for m in made):
            yield a


def _lies_in(owner: set[Path], zeroed: set[Path]) -> bool:
    """Whether one path to the owner leads through what is zeroed; what is made out of sight is taken for it."""
    if not all(any(isinstance(path[0], ast.Call) for path in paths) for paths in (owner, zeroed)):
        return True
    return any(path[: len(above)] == above for path in owner for above in zeroed)


def _paths(
    facts: Facts, node: ast.expr, parts: bool = False, depth: int = 0, seen: frozenset[object] = frozenset()
) -> set[Path]:
    """All names of a network, the call that made it among them where that shows; `parts`: of its parts, too."""

    def below(*nodes: ast.expr) -> set[Path]:
        return set().union(*(_paths(facts, n, parts, depth + 1, seen) for n in nodes))

    if depth > 6:
        return set()
    if isinstance(node, ast.Attribute):
        whole = below(node.value)
        found = whole if node.attr == "module" else {(*path, node.attr) for path in whole}  # of what wraps it
        return found | below(*attribute_values(facts, node))
    if isinstance(node, ast.Subscript):
        return {(*path, ast.unparse(node.slice)) for path in below(node.value)}
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in GIVE_ITSELF:
            return below(node.func.value)
        wraps = facts.names.resolve(node.func) in WRAPPED
        given = given_to(node) if parts else node.args[:1] if wraps else ()
        return {(node,)} | below(*given)
    if isinstance(node, (ast.List, ast.Tuple)):
        return below(*node.elts) if parts else set()
    if isinstance(node, ast.IfExp):
        return below(node.body, node.orelse)
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    if not isinstance(node, ast.Name) or scope is None or (scope, node.id) in seen:
        return set()
    seen |= {(scope, node.id)}
    return {(scope, node.id)} | below(*values_of(facts, node.id, scope))

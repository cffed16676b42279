"""Networks in a list or a dictionary that the Module is given are no parts of it by that: the Trainer would neither
place them nor average their gradients. `nets = {"g": Net(), "d": Net()}`, `nets = [Net() for _ in range(3)]`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ..facts.other_files import is_module_there
from ..facts.scopes import Scope
from ..facts.script import Facts
from .networks import OF_NETWORKS, asks, made_network, unchained
from .nodes import local_function, returned
from .optimizers import is_none

NETWORKS = ("torch.nn.", "torchvision.models.", "timm.", "transformers.", "segmentation_models_pytorch.")
DEPTH = 4


def holds_networks(facts: Facts, name: str, scope: Scope) -> bool:
    """Whether a name stands for a list or a dictionary with networks in it."""
    return any(_may_be_network(facts, n) or _lists_networks(facts, n) for n in _held(facts, name, scope))


def registered(
    facts: Facts,
    name: str,
    scope: Scope,
    attribute: str,
    unit: str,
    given_too: Collection[str] = (),
    may_miss: bool = False,
) -> list[str]:
    """The lines of a constructor that make the networks parts of the Module, where what it is given holds some.

    `given_too`: what else it is given, by name. `may_miss`: whether it may have no value.
    """
    if _registers_itself(facts, name, scope):
        return []
    held = list(_held(facts, name, scope))
    networks = [n for n in held if _may_be_network(facts, n)]
    listed = [n for n in held if _lists_networks(facts, n) and not (isinstance(n, ast.Name) and n.id in given_too)]
    if not listed and all(isinstance(n, ast.Name) and n.id in given_too for n in networks):
        return []
    may_miss = may_miss or any(is_none(v) for v in facts.devices.assigned(name, scope) or ())
    given = f"{name} or ()" if may_miss else name
    if _is_dictionary(facts, name, scope):
        given = f"({name} or {{}}).values()" if may_miss else f"{name}.values()"
    if listed:
        return [
            f"for number, held in enumerate({given}):",
            f"{unit}for place, network in enumerate(held if isinstance(held, list) else [held]):",
            f'{unit * 2}if hasattr(network, "named_parameters"):',
            f'{unit * 3}self.add_module(f"{attribute}_{{number}}_{{place}}", network)',
        ]
    lines = [f"for number, network in enumerate({given}):"]
    inner = unit
    if not all(_is_network(facts, n) for n in held):
        lines.append(f'{unit}if hasattr(network, "named_parameters"):')
        inner += unit
    return [*lines, f'{inner}self.add_module(f"{attribute}_{{number}}", network)']


def _registers_itself(facts: Facts, name: str, scope: Scope) -> bool:
    """`nets = nn.ModuleList([])`, which is a network by itself."""
    values = facts.devices.assigned(name, scope) or []
    made = [facts.names.resolve(v.func) if isinstance(v := unchained(value), ast.Call) else None for value in values]
    return bool(made) and all(full is not None and full.startswith("torch.nn.Module") for full in made)


def _held(facts: Facts, name: str, scope: Scope) -> Iterator[ast.expr]:
    """What the list or dictionary of a name is made of, where that shows."""
    for value in _containers(facts, name, scope):
        yield from _parts(value)
    for read in facts.scopes.reads(name, scope):
        up = facts.scopes.parents.get(read)
        above = facts.scopes.parents.get(up) if up is not None else None
        if isinstance(up, ast.Attribute) and up.attr == "append" and isinstance(above, ast.Call):
            yield from above.args
        elif isinstance(up, ast.Subscript) and up.value is read and isinstance(above, ast.Assign):
            yield from [above.value] if up in above.targets else []


def _lists_networks(facts: Facts, node: ast.expr) -> bool:
    """`{"kd": losses}`, where losses is a list of networks itself; what another file has a class of may be one."""
    home = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    parts = _parts(node) if isinstance(node, (ast.List, ast.ListComp)) else []
    if home is not None and isinstance(node, ast.Name):
        lists = (v for v in _containers(facts, node.id, home) if isinstance(v, (ast.List, ast.ListComp)))
        parts = list(_held(facts, node.id, home)) if any(True for _ in lists) else []
    return any(_is_network(facts, p) or _is_of_a_class(facts, p) for p in parts)


def _is_of_a_class(facts: Facts, node: ast.expr) -> bool:
    """`Loss(3)` of a class that another file of the script defines."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id[:1].isupper()):
        return False
    home = facts.scopes.scope_of(node.func).lookup(node.func.id)
    stores = home.stores.get(node.func.id, []) if home is not None else []
    package = (facts.names.resolve(node.func) or "").partition(".")[0]
    return all(isinstance(s, ast.alias) for s in stores) and package not in ("torch", "numpy", "torchvision")


def _parts(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, (ast.List, ast.Tuple)):
        return value.elts
    if isinstance(value, ast.Dict):
        return value.values
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        of = value.generators[0]
        same = isinstance(value.elt, ast.Name) and ast.unparse(of.target) == value.elt.id
        return _parts(of.iter) if same else [value.elt]  # `[net for net in (a, b)]`
    if isinstance(value, ast.DictComp):
        return [value.value]
    return [k.value for k in value.keywords] if isinstance(value, ast.Call) else []


def _containers(facts: Facts, name: str, scope: Scope, depth: int = 0) -> Iterator[ast.expr]:
    """The displays that a name is given, straight or by a function of this file."""
    for store in scope.stores.get(name, ()):
        s = facts.scopes.parents.get(store)
        if isinstance(s, ast.Assign):
            yield from _displays(facts, s.value, depth)
        elif isinstance(s, ast.Tuple) and isinstance(store, ast.Name):
            yield from _unpacked(facts, s, s.elts.index(store), depth)


def _displays(facts: Facts, value: ast.expr, depth: int) -> Iterator[ast.expr]:
    if isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)) or _is_dict(value):
        yield value
    elif (inner := _copied(value)) is not None:
        yield from [inner] if isinstance(inner, (ast.Tuple, ast.GeneratorExp)) else _displays(facts, inner, depth)
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):  # [None] + losses
        for part in (value.left, value.right):
            yield from _displays(facts, part, depth + 1)
    elif isinstance(value, ast.Name) and depth < DEPTH:
        home = facts.scopes.scope_of(value).lookup(value.id)
        yield from _containers(facts, value.id, home, depth + 1) if home is not None else ()
    elif isinstance(value, ast.Call) and depth < DEPTH:
        for made in _made(facts, value):
            yield from _displays(facts, made, depth + 1)


def _unpacked(facts: Facts, targets: ast.Tuple, place: int, depth: int) -> Iterator[ast.expr]:
    """`nets, optimizer = make()`"""
    s = facts.scopes.parents.get(targets)
    values = _made(facts, s.value) if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) else []
    for made in values:
        if isinstance(made, ast.Tuple) and len(made.elts) == len(targets.elts):
            yield from _displays(facts, made.elts[place], depth + 1)


def _made(facts: Facts, call: ast.Call) -> list[ast.expr]:
    f = local_function(facts, call.func) if isinstance(call.func, ast.Name) else None
    return returned(f) if f is not None else []


def _copied(value: ast.expr) -> ast.expr | None:
    """The nets of `list(nets)`, `tuple(Net() for _ in range(3))`."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) or len(value.args) != 1:
        return None
    return value.args[0] if value.func.id in ("list", "tuple") else None


def _is_dict(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict"


def _is_dictionary(facts: Facts, name: str, scope: Scope) -> bool:
    return any(isinstance(v, (ast.Dict, ast.DictComp)) or _is_dict(v) for v in _containers(facts, name, scope))


def _may_be_network(facts: Facts, node: ast.expr) -> bool:
    """A network, or a name that is one where it is put in: another loop, over the list itself, may give it others.

    for kind in kinds:
        net = make(kind)
        nets.append(net)
    for net in nets: ...
    """
    if _is_network(facts, node) or not isinstance(node, ast.Name):
        return _is_network(facts, node)
    home = facts.scopes.scope_of(node).lookup(node.id)
    stores = home.stores.get(node.id, ()) if home is not None else ()
    given = (s.value for s in map(facts.scopes.parents.get, stores) if isinstance(s, ast.Assign))
    made = [unchained(value) for value in given if isinstance(value, ast.Call)]
    if home is None or len(stores) < 2 or not made:
        return False
    asked = any(asks(facts, read, OF_NETWORKS) for read in facts.scopes.reads(node.id, home))
    return asked or any(_is_network(facts, call) for call in made)


def _is_network(facts: Facts, node: ast.expr, deep: int = 0) -> bool:
    """A network by its class, or by what is asked of its name."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        node = node.func.value  # `Net().eval()`
    if isinstance(node, ast.Name):
        home = facts.scopes.scope_of(node).lookup(node.id)
        if home is None or made_network(facts, node.id, home) is not None:
            return home is not None
        each = facts.devices.unpacked(node.id, home)  # `a, b = Net(), Net()`
        return bool(each) and all(isinstance(v, ast.Call) and _is_network(facts, v) for v in each or ())
    if not isinstance(node, ast.Call):
        return False
    made = _made(facts, node)
    if made:  # `def ladder(width): return nn.Sequential(...)`
        return deep < DEPTH and all(_is_network(facts, m, deep + 1) for m in made)
    full = facts.names.resolve(node.func) or ""
    of_torch = full.startswith(NETWORKS) and not full.startswith("torch.nn.functional.")
    local = isinstance(node.func, ast.Name) and any(c.name == node.func.id for c in facts.classes.modules)
    return (of_torch and full.rpartition(".")[2][:1].isupper()) or local or is_module_there(facts, node.func)

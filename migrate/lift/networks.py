"""The networks of a step are the Module's own, or the Trainer would neither place them nor average their gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.asked import asks
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts, once_a_file
from .recipe import CannotLift, DataPass

PARAMETERS = ("parameters", "named_parameters")
OF_NETWORKS = (*PARAMETERS, "train", "eval", "forward", "modules", "requires_grad_")
OF_TORCH = ("torch.nn.", "torchvision.models.")
OF_A_NETWORK = (*PARAMETERS, "state_dict", "load_state_dict", "train", "eval")


def check_networks(facts: Facts, train: DataPass) -> None:
    """Raise for a step that calls a network which stays an attribute of the loop's object: `self.model(x)`, set where
    this file does not show it, or more than once.
    """
    for called in own_calls(train.body):
        if is_network(facts, called.attr):
            raise set_elsewhere(facts, called)


@once_a_file
def with_parameters(facts: Facts) -> set[str]:
    """The attributes that hold modules: `a` in `x.a.parameters()` and `x.a.part.parameters()`."""
    found = set()
    for call in (*facts.calls_of("parameters"), *facts.calls_of("named_parameters")):
        node = call.func
        while isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Name):
            node = node.value
        if isinstance(node, ast.Attribute) and node is not call.func:
            found.add(node.attr)
    return found


def own_calls(body: list[ast.stmt]) -> Iterator[ast.Attribute]:
    """`self.a` in `self.a(batch)`."""
    for s in body:
        for call in walk(s, ast.Call):
            if isinstance(call.func, ast.Attribute) and call.args:
                root = call.func.value
                if isinstance(root, ast.Name) and root.id == "self":
                    yield call.func


def set_elsewhere(facts: Facts, called: ast.Attribute) -> CannotLift:
    c = next((up for up in facts.scopes.ancestors(called) if isinstance(up, ast.ClassDef)), None)
    above = facts.classes.above(c) if c is not None else []
    own = {d.name for d in facts.walk(ast.ClassDef)}
    beyond = [facts.short(b) for d in above for b in d.bases if getattr(b, "id", "") not in {*own, "object"}]
    if beyond and not facts.stores_of(called.attr):
        return CannotLift(called, f"`{facts.short(called)}` is set in another file, by `{beyond[0]}`")
    return CannotLift(called, f"`{facts.short(called)}` is set elsewhere than in the constructor")


def is_network(facts: Facts, name: str) -> bool:
    """Whether the attributes of this name are treated as modules are, and none is a method."""
    if any(f.name == name for f in facts.walk(ast.FunctionDef)):
        return False
    methods = (n for method in OF_A_NETWORK for n in facts.attributes.get(method, ()))
    return any(isinstance(n.value, ast.Attribute) and n.value.attr == name for n in methods)


def made_network(facts: Facts, name: str, scope: Scope) -> ast.Call | None:
    """The one call that gives a name its value, where that is a network: by its class, or by what it is asked for."""
    values = facts.devices.unpacked(name, scope)  # g, d = Generator(), Critic()
    made = unchained(values[0]) if values is not None and len(values) == 1 else None
    if not isinstance(made, ast.Call):
        return None
    if (facts.names.resolve(made.func) or "").startswith(OF_TORCH):
        return made if facts.placed.is_module(made) else None
    if isinstance(made.func, ast.Name) and any(c.name == made.func.id for c in facts.classes.modules):
        return made
    asked = any(asks(facts, read, OF_NETWORKS) for read in facts.scopes.reads(name, scope))
    return made if asked else None


def unchained(made: ast.expr) -> ast.expr:
    """`Net()` of `Net().eval()`."""
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and isinstance(made.func.value, ast.Call):
        made = made.func.value
    return made

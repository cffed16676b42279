"""Networks of which a script trains copies alone, as federated learning does: `train(copy.deepcopy(net))`.

A Trainer is given the copies. The network itself, which is evaluated, is placed by nobody but the script.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from .arguments import argument
from .nodes import FUNCTIONS, walk

if TYPE_CHECKING:
    from .script import Facts

MOVES = ("cuda", "to", "xpu", "mps")
LOOKS = {"print", "len", "sum", "str", "repr", "zip", "list", "tuple", "enumerate", "isinstance", "type", "hasattr"}
EVALUATES = re.compile(r"_*(test|eval|valid|infer|predict|accura|score|summary)", re.IGNORECASE)


def is_template(facts: Facts, node: ast.expr) -> bool:
    """`net` of `net.to(device)`, and what makes it in `net = Net().to(device)`."""
    if "deepcopy" not in facts.text.text:
        return False
    up = facts.scopes.parents.get(node)
    call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) and up.attr in MOVES else None
    if not isinstance(call, ast.Call):
        return False
    name: ast.AST = node
    if isinstance(node, ast.Call):
        s = facts.scopes.parents.get(call)
        name = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else node
    scope = facts.scopes.scope_of(name).lookup(name.id) if isinstance(name, ast.Name) else None
    if scope is None or not isinstance(name, ast.Name) or name.id in scope.params:
        return False
    key = (is_template, scope, name.id)
    if key not in facts.answers:
        reads = list(facts.scopes.reads(name.id, scope))
        copied = [r for r in reads if _is_copied(facts, r)]
        facts.answers[key] = bool(copied) and not any(_trains(facts, r, 0) for r in reads if r not in copied)
    return bool(facts.answers[key])


def _is_copied(facts: Facts, read: ast.Name) -> bool:
    """`train(copy.deepcopy(net))`, `local = copy.deepcopy(net).to(device)`"""
    up = facts.scopes.parents.get(read)
    return isinstance(up, ast.Call) and read in up.args and facts.names.resolve(up.func) == "copy.deepcopy"


def _trains(facts: Facts, read: ast.Name, depth: int) -> bool:
    """Whether the network itself may be what is trained there."""
    up = facts.scopes.parents.get(read)
    if isinstance(up, ast.Attribute):
        if up.attr in ("parameters", "named_parameters", "children", "modules"):
            return _handed_on(facts, up)
        return up.attr == "zero_grad" or (_is_called(facts, up) and _in_training(facts, read) and up.attr not in MOVES)
    if isinstance(up, ast.keyword):
        up = facts.scopes.parents.get(up)
    if not isinstance(up, ast.Call):
        return True
    if up.func is read:
        return _in_training(facts, read)
    return _given(facts, up, read, depth)


def _given(facts: Facts, call: ast.Call, read: ast.Name, depth: int) -> bool:
    """Whether what a call is given may be trained by what is called."""
    if _is_copied(facts, read):
        return False
    f = call.func
    named = f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")
    called = [g for g in facts.walk(ast.FunctionDef) if g.name == named]
    if not called:
        return not (named in LOOKS or EVALUATES.match(named))
    return depth > 3 or any(_trained_by(facts, g, call, read, depth) for g in called)


def _trained_by(facts: Facts, g: ast.FunctionDef, call: ast.Call, read: ast.Name, depth: int) -> bool:
    scope, bound = facts.scopes.by_node[g], facts.classes.holder(g) is not None
    for name in scope.params:
        if argument(call, g, name, bound) is read:
            return any(_trains(facts, r, depth + 1) for r in facts.scopes.reads(name, scope))
    return True


def _handed_on(facts: Facts, asked: ast.Attribute) -> bool:
    """`SGD(net.parameters())`, and not `zip(net.parameters(), local.parameters())`."""
    for up in facts.scopes.ancestors(asked):
        if isinstance(up, ast.stmt):
            break
        if isinstance(up, ast.Call) and up.func is not asked and getattr(up.func, "id", "") not in LOOKS:
            return True
    return False


def _is_called(facts: Facts, a: ast.Attribute) -> bool:
    up = facts.scopes.parents.get(a)
    return isinstance(up, ast.Call) and up.func is a


def _in_training(facts: Facts, node: ast.AST) -> bool:
    """Whether backward is called in the function around a node."""
    around = next((u for u in facts.scopes.ancestors(node) if isinstance(u, FUNCTIONS)), None)
    backward = facts.attributes.get("backward", ())
    if around is not None:
        own = set(walk(around))
        return any(b in own for b in backward)
    return any(not any(isinstance(u, FUNCTIONS) for u in facts.scopes.ancestors(b)) for b in backward)

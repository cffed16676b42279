"""A network that a function, or a file, makes for itself beside the training: no Trainer gets it, so that its own move
stays.

def test():
    net = Net().to(device)
    net.load_state_dict(torch.load(path))
    print(evaluate(net, loader))
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .back_from_cpu import MOVES, is_module_method, itself
from .nodes import FUNCTIONS
from .other_files import found_there
from .unplaced import runs_backward

if TYPE_CHECKING:
    from .script import Facts

Home = ast.FunctionDef | ast.Module
LOOKS = ("torch.onnx.", "torch.save", "torchsummary.", "torchinfo.")  # what only runs a network, or writes it
HOLDS = ast.Tuple | ast.List | ast.Dict | ast.Starred | ast.keyword | ast.IfExp


def works_apart(facts: Facts, node: ast.expr) -> bool:
    """Whether what is moved there is such a network, by its name or as it is made."""
    up = facts.scopes.parents.get(node)
    call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) and up.attr in MOVES else None
    if not isinstance(call, ast.Call) or call.func is not up:
        return False
    f = next((u for u in facts.scopes.ancestors(call) if isinstance(u, FUNCTIONS)), facts.tree)
    name = _name(facts, node, call)
    if not isinstance(f, Home) or name is None or facts.scopes.scope_of(name).node is not f:
        return False
    at_top = isinstance(f, ast.Module) and facts.scopes.statement_of(call) in f.body
    if not (at_top and _is_kept(facts, name.id) if isinstance(f, ast.Module) else _is_called_by_others(facts, f)):
        return False
    key = (works_apart, f, name.id)
    if key not in facts.answers:
        facts.answers[key] = False  # while it is asked
        facts.answers[key] = _is_for_itself(facts, f, name)
    return bool(facts.answers[key])


def _is_called_by_others(facts: Facts, f: ast.FunctionDef) -> bool:
    """What a file is started for itself is placed by its runtime."""
    for_others = facts.only_defines or (facts.taken is not None and facts.taken(f.name))
    return facts.lifting or (facts.is_library and for_others)


def _is_kept(facts: Facts, name: str) -> bool:
    """Whether a file that others import, and that trains nothing, has a network at its top that nobody takes."""
    alone = facts.is_library and not facts.lifting and "backward" not in facts.attributes
    return alone and facts.taken is not None and not facts.taken(name)


def _name(facts: Facts, node: ast.expr, call: ast.Call) -> ast.Name | None:
    """The net of `net.to(device)` and of `net = Net().to(device)`."""
    if isinstance(node, ast.Name):
        return node
    s = facts.scopes.statement_of(call)
    made = itself(s.value) if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    target = s.targets[0] if isinstance(s, ast.Assign) and made is itself(node) else None
    return target if isinstance(target, ast.Name) and isinstance(node, ast.Call) else None


def _is_for_itself(facts: Facts, f: ast.FunctionDef | ast.Module, name: ast.Name) -> bool:
    """Whether a function that trains nothing makes the network by that name, and gives it to nobody who keeps it."""
    scope = facts.scopes.by_node[f]
    if name.id in (*scope.params, *scope.globals) or facts.classes.holder(f) is not None:
        return False
    if isinstance(f, ast.FunctionDef) and runs_backward(facts, f):
        return False
    stores = [facts.scopes.parents.get(s) for s in scope.stores.get(name.id, ())]
    made = [itself(s.value) for s in stores if isinstance(s, ast.Assign)]
    made = [m for m in made if not (isinstance(m, ast.Name) and m.id == name.id)]  # net = net.to(device)
    if not made or not all(isinstance(m, ast.Call) for m in made):
        return False
    reads = list(facts.scopes.reads(name.id, scope))
    asked = any(is_module_method(facts.scopes.parents, facts.scopes.parents.get(r)) for r in reads)
    return (asked or _makes_module(facts, made)) and not any(_goes_on(facts, r) for r in reads)


def _makes_module(facts: Facts, made: list[ast.expr]) -> bool:
    names = {c.name for c in facts.classes.modules}
    return all(isinstance(m, ast.Call) and isinstance(m.func, ast.Name) and m.func.id in names for m in made)


def _goes_on(facts: Facts, read: ast.Name) -> bool:
    """Whether a read hands the network to what may place it, or train it."""
    child: ast.AST = read
    up = facts.scopes.parents.get(read)
    while isinstance(up, HOLDS):
        child, up = up, facts.scopes.parents.get(up)
    if isinstance(up, ast.Call) and child is not up.func:
        return not _only_works(facts, up)
    return isinstance(up, (ast.Assign, ast.Return, ast.Yield, ast.YieldFrom, ast.NamedExpr))


def _only_works(facts: Facts, call: ast.Call) -> bool:
    """Whether a call works with the network it is given: a function that trains nothing, or one that shows it."""
    if isinstance(call.func, ast.Name) and call.func.id in ("print", "len", "str", "type"):
        return True
    if (facts.names.resolve(call.func) or "").startswith(LOOKS):
        return True
    called = facts.devices.function_of(call)
    if called is not None:
        return not runs_backward(facts, called)
    found = found_there(facts, call.func) if facts.others else None
    return found is not None and isinstance(found[2], ast.FunctionDef) and not runs_backward(found[1], found[2])

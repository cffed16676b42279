"""What a script takes to the CPU and back: `model.cpu()`, `torch.save(...)`, `model.to(device)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .nodes import FUNCTIONS, LOOPS, walk
from .spelled import spelled
from .tensor_methods import METHODS

if TYPE_CHECKING:
    from .scopes import Scope
    from .script import Facts

MOVES = ("cuda", "to", "xpu", "mps")
MODULE_METHODS = {
    "parameters", "named_parameters", "train", "eval", "state_dict", "load_state_dict", "zero_grad", "modules",
    "forward",
}  # fmt: skip
# methods of a network that give the network itself
GIVE_THEMSELVES = {
    "to", "cuda", "cpu", "train", "eval", "float", "double", "half", "bfloat16", "type", "requires_grad_",
    "share_memory", "apply",
}  # fmt: skip


def itself(value: ast.expr) -> ast.expr:
    """The net of `net.to(device).eval()`, which is the very same."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in GIVE_THEMSELVES:
        value = value.func.value
    return value


def is_module_method(parents: dict[ast.AST, ast.AST], node: ast.AST | None) -> bool:
    """`net.parameters`, `net.train()`; not `corpus.train`, which a module has for calling alone."""
    if not isinstance(node, ast.Attribute) or node.attr not in MODULE_METHODS:
        return False
    call = parents.get(node)
    return node.attr not in ("train", "eval") or (isinstance(call, ast.Call) and call.func is node)


def goes_to_cpu(facts: Facts, call: ast.Call) -> bool:
    """`x.cpu()`, `x.to("cpu")`: what is brought there is moved back by nobody but the script."""
    f = call.func
    if not isinstance(f, ast.Attribute) or f.attr not in ("cpu", "to"):
        return False
    where = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device"), None)
    return f.attr == "cpu" if where is None else f.attr == "to" and facts.devices.is_host(where)


def is_back_from_cpu(facts: Facts, node: ast.expr) -> bool:
    """`model.cpu()`, `torch.save(...)`, `model.to(device)`: it moves what a statement before it took away.

    That may stand in a branch, `if use_cuda: model.cpu()`, or at the end of the round before.
    """
    parents, up = facts.scopes.parents, facts.scopes.parents.get(node)
    base = _switched(node)
    if not isinstance(base, (ast.Name, ast.Attribute)) or not (isinstance(up, ast.Attribute) and up.attr in MOVES):
        return False
    if "cpu" not in facts.attributes and not facts.devices.hosts.names_host:
        return False
    name = _owner(node)
    for before, again in _before(facts, facts.scopes.statement_of(node)):
        for n in walk(before, ast.Call):
            if isinstance(n.func, ast.Attribute) and _owner(n.func.value) == name:
                alone = n is before.value
                if goes_to_cpu(facts, n) and (
                    _only_named(n, parents)
                    or (alone and (not again or _is_network(facts, before, name)))
                    or (not alone and _is_used_as_network(facts, _switched(n.func.value)))
                ):
                    return True
                if n.func.attr in MOVES and alone:
                    return False
    return False


def _before(facts: Facts, s: ast.stmt) -> Iterator[tuple[ast.Expr | ast.Assign, bool]]:
    """What runs in a function before one of its statements, backwards, and whether in the round before it."""
    while block := facts.scopes.block_of(s):
        at, up = block.index(s), facts.scopes.parents.get(s)
        yield from ((below, False) for above in reversed(block[:at]) for below in _simple(above))
        if isinstance(up, LOOPS) and s in up.body:
            yield from ((below, True) for again in reversed(block[at:]) for below in _simple(again))
        if not isinstance(up, ast.stmt) or isinstance(up, (*FUNCTIONS, ast.ClassDef)):
            return
        s = up


def _simple(s: ast.stmt) -> Iterator[ast.Expr | ast.Assign]:
    """The expressions and assignments of a statement, of its branches and loops too, backwards."""
    if isinstance(s, (ast.Expr, ast.Assign)):
        yield s
    elif not isinstance(s, (*FUNCTIONS, ast.ClassDef)):
        for block in ("finalbody", "orelse", "body"):
            for below in reversed(getattr(s, block, None) or []):
                yield from _simple(below)


def _is_network(facts: Facts, s: ast.Expr | ast.Assign, name: str) -> bool:
    """Of what the round before took to the CPU: `net.cpu()` as a statement of its own does nothing to a tensor."""
    if isinstance(s, ast.Expr):
        return True
    targets = [t for t in s.targets if isinstance(t, ast.Name) and t.id == name]
    scope = facts.scopes.scope_of(targets[0]).lookup(name) if targets else None
    return scope is not None and facts.placed.used_as_module(name, scope)


def _is_used_as_network(facts: Facts, node: ast.expr) -> bool:
    """The model of `torch.save(model.cpu(), path)`, which is brought there itself, wherever that stands."""
    if isinstance(node, ast.Name):
        scope = facts.scopes.scope_of(node).lookup(node.id)
        return scope is not None and facts.placed.used_as_module(node.id, scope)
    named = (a for method in MODULE_METHODS - {"forward", "train", "eval"} for a in facts.attributes.get(method, ()))
    return any(spelled(a.value) == spelled(node) for a in named)


def is_moved(facts: Facts, name: str, scope: Scope) -> bool:
    """`batches.cuda()`, `Variable(batches).float().cuda()`: no loader has that, whatever it is called."""
    return any(_moves_tensor(facts, read) for read in facts.scopes.reads(name, scope))


def _moves_tensor(facts: Facts, node: ast.AST) -> bool:
    """Whether a value is moved, or what torch makes of it."""
    parents, up = facts.scopes.parents, facts.scopes.parents.get(node)
    if isinstance(up, ast.Attribute):
        return up.attr in MOVES or (up.attr in METHODS and _moves_tensor(facts, parents[up]))
    return isinstance(up, ast.Call) and node in up.args and _is_of_torch(facts, up) and _moves_tensor(facts, up)


def _is_of_torch(facts: Facts, call: ast.Call) -> bool:
    """Whether a call is one of torch's functions that are given tensors, and no loader."""
    full = facts.names.resolve(call.func) or ""
    return full.startswith("torch.") and not full.startswith(("torch.utils.", "torch.nn."))


def _owner(node: ast.expr) -> str:
    """`model` of `model.eval()`, and of `model.module`, which moves with it."""
    return spelled(_switched(node)).removesuffix(".module")


def _switched(node: ast.expr) -> ast.expr:
    """`model` of `model.eval()`"""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("eval", "train"):
        node = node.func.value
    return node


def _only_named(call: ast.Call, parents: dict[ast.AST, ast.AST]) -> bool:
    """`model.cpu().state_dict()`, which no tensor has."""
    return is_module_method(parents, parents.get(call))

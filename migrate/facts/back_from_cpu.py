"""What a script takes to the CPU and back: `model.cpu()`, `torch.save(...)`, `model.to(device)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .nodes import walk
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
    """`model.cpu()`, `torch.save(...)`, `model.to(device)`: it moves what a statement above it took away."""
    parents, up = facts.scopes.parents, facts.scopes.parents.get(node)
    if not isinstance(node, (ast.Name, ast.Attribute)) or not (isinstance(up, ast.Attribute) and up.attr in MOVES):
        return False
    s, name = facts.scopes.statement_of(node), ast.unparse(node)
    block = facts.scopes.block_of(s)
    for above in reversed(block[: block.index(s)] if block else []):
        if not isinstance(above, (ast.Expr, ast.Assign)):
            continue
        for n in walk(above, ast.Call):
            if isinstance(n.func, ast.Attribute) and _owner(n.func.value) == name:
                if goes_to_cpu(facts, n) and (n is above.value or _only_named(n, parents)):
                    return True
                if n.func.attr in MOVES and n is above.value:
                    return False
    return False


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
    """`model` of `model.eval()`"""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("eval", "train"):
        node = node.func.value
    return ast.unparse(node)


def _only_named(call: ast.Call, parents: dict[ast.AST, ast.AST]) -> bool:
    """`model.cpu().state_dict()`, which no tensor has."""
    return is_module_method(parents, parents.get(call))

"""Tensors that a step makes and that meet, in the same expression, what the model gave or what the loader did.

`loss_fn(model(x), torch.randn(4, 2))`, `model(x) - torch.ones(4, 2)`: whatever is kept of it, they are where that is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..codemods.back_on_cpu import brought
from ..codemods.host_reads import MOVES, NUMBERS, READ, is_number
from ..facts.nodes import LOOPS
from ..facts.script import Facts
from ..facts.sizes import is_size

ELSEWHERE = ("numpy.", "matplotlib.", "sklearn.", "torch.save", "PIL.")  # takes values on the CPU alone


Asks = Callable[[Facts, ast.expr], bool]


def meets_model(facts: Facts, made: ast.Call) -> bool:
    """Whether a tensor is put together with a value of the model's; one number goes with tensors anywhere."""
    return not is_number(made) and beside_model(facts, made)


def beside_model(facts: Facts, node: ast.expr) -> bool:
    """Whether a value is put together with one of the model's."""
    return _meets(facts, node, _is_of_model)


def meets_brought(facts: Facts, made: ast.Call) -> bool:
    """Whether a tensor is put together with what the script brought to the CPU: `out.cpu() - torch.ones(4, 2)`."""
    return "cpu" in facts.attributes and _meets(facts, made, brought)


def _meets(facts: Facts, made: ast.expr, asks: Asks) -> bool:
    """Whether something is asked for of a value that a tensor is put together with."""
    node: ast.AST = made
    beside: list[ast.expr] = []  # the other elements of a list that a function is given
    for up in facts.scopes.ancestors(made):
        if isinstance(up, ast.Attribute):
            if up.attr in MOVES | NUMBERS:
                return False
        elif isinstance(up, ast.Call):
            if _takes_on_cpu(facts, up):
                return False
            if any(asks(facts, other) for other in (*beside, *_others(up, node))):
                return True
            if up.func is not node and not (facts.names.resolve(up.func) or "").startswith("torch."):
                return False  # what another function makes of it does not show
            beside = []
        elif isinstance(up, (ast.BinOp, ast.Compare)):
            if any(asks(facts, other) for other in _operands(up) if other is not node):
                return True
        elif isinstance(up, (ast.Tuple, ast.List)):
            beside += [e for e in up.elts if e is not node]
        elif not isinstance(up, (ast.keyword, ast.UnaryOp)) and not (
            isinstance(up, ast.Subscript) and up.value is node
        ):
            return False
        node = up
    return False


def _others(call: ast.Call, node: ast.AST) -> Iterator[ast.expr]:
    """What a call is given besides, and what a method is called of."""
    if isinstance(call.func, ast.Attribute) and call.func is not node:
        yield call.func.value
    yield from (a for a in call.args if a is not node)
    yield from (k.value for k in call.keywords if k is not node)


def _operands(node: ast.BinOp | ast.Compare) -> list[ast.expr]:
    return [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]


def _takes_on_cpu(facts: Facts, call: ast.Call) -> bool:
    named = isinstance(call.func, ast.Name) and call.func.id in READ
    return named or (facts.names.resolve(call.func) or "").startswith(ELSEWHERE)


def _is_of_model(facts: Facts, node: ast.AST, depth: int = 0) -> bool:
    """Whether a value is computed from what a model gave, or from a batch of a loader; no number read of one."""
    if isinstance(node, ast.expr) and is_size(node):
        return False
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in NUMBERS:
            return False
        if _takes_on_cpu(facts, node):
            return False
        if facts.loops.is_model_call(node):
            return True
        parts = [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *_others(node, node.func)]
        return any(_is_of_model(facts, part, depth) for part in parts)
    if isinstance(node, ast.Name):
        return depth < 4 and _is_named_of_model(facts, node, depth)
    if isinstance(node, (ast.Lambda, ast.Attribute)):
        return False  # of an object, or of a module: its weights may be read for their numbers
    return any(_is_of_model(facts, part, depth) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))


def _is_named_of_model(facts: Facts, name: ast.Name, depth: int) -> bool:
    scope = facts.scopes.scope_of(name).lookup(name.id)
    if scope is None or name.id in scope.params:
        return False
    stores = scope.stores.get(name.id, [])
    if any(_is_of_batch(facts, store) for store in stores):
        return True
    values = facts.devices.unpacked(name.id, scope) or []
    return any(_is_of_model(facts, value, depth + 1) for value in values)


def _is_of_batch(facts: Facts, store: ast.AST) -> bool:
    """Whether a loop over a loader's batches gives a name its values."""
    up: ast.AST | None = store
    while isinstance(up, (ast.Name, ast.Tuple, ast.List, ast.Starred)):
        up = facts.scopes.parents.get(up)
    return isinstance(up, LOOPS) and isinstance(up, ast.For) and facts.loops.is_loader(up.iter)

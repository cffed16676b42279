"""What the host has already: numbers and arrays of numpy and its like, which have `.item()` as tensors do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .arguments import argument
from .nodes import walk
from .uses import parts_of_arrays

if TYPE_CHECKING:
    from .script import Facts

LIBRARIES = {"numpy", "sklearn", "scipy", "pandas", "skimage", "cv2", "PIL", "math", "statistics", "random", "cupy"}
GIVE = {"numpy", "tolist", "item"}
# what makes tensors of numbers: given a tensor, some refuse one of a card, and the others warn
OF_NUMBERS = {f"torch.{n}Tensor" for n in ("", "Float", "Double", "Half", "Long", "Int", "Short", "Byte", "Bool")}
OF_NUMBERS |= {"torch.tensor", "torch.from_numpy"}


def on_host(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """Whether a value shows itself to be no tensor: `np.mean(x)`, `out.cpu().numpy().sum()`, a name given one."""
    if depth > 6:
        return False
    if isinstance(node, ast.Call):
        full = facts.names.resolve(node.func)
        if full is not None:
            return full.partition(".")[0] in LIBRARIES
        return isinstance(node.func, ast.Attribute) and (
            node.func.attr in GIVE or on_host(facts, node.func.value, depth + 1)
        )
    if isinstance(node, ast.Name):
        return any(on_host(facts, v, depth + 1) for v in _given(facts, node))
    return any(on_host(facts, part, depth + 1) for part in _parts(node))


def is_of_numbers(facts: Facts, name: ast.Name) -> bool:
    """Whether a name is one of which tensors are made, `torch.LongTensor(items)`: a list, an array, or a number."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    ups = ((facts.scopes.parents.get(r), r) for r in facts.scopes.reads(name.id, scope)) if scope is not None else ()
    return any(
        isinstance(up, ast.Call) and up.args[:1] == [read] and facts.names.resolve(up.func) in OF_NUMBERS
        for up, read in ups
    )


def is_array(facts: Facts, f: ast.FunctionDef, name: str) -> bool:
    """Whether a parameter is given no tensors but arrays: by every caller, or as f writes it, or by it, into an array
    of numpy's.
    """
    if name not in facts.scopes.by_node[f].params:
        return False
    bound = facts.classes.holder(f) is not None
    calls = [u for u in facts.classes.uses_of(f) if f not in facts.scopes.ancestors(u)]
    given = [argument(u, f, name, bound) if isinstance(u, ast.Call) else None for u in calls]
    if given and all(v is not None and on_host(facts, v) for v in given):
        return True
    return any(name in parts_of_arrays(e) for e in _written(facts, f))


def _written(facts: Facts, f: ast.FunctionDef) -> Iterator[ast.expr]:
    """What an array gets, and where: `arr[range(n), y] = x`."""
    for s in walk(f):
        if not isinstance(s, (ast.Assign, ast.AugAssign)):
            continue
        for target in s.targets if isinstance(s, ast.Assign) else [s.target]:
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.value, ast.Name)
                and on_host(facts, target.value)
            ):
                yield from (s.value, target.slice)


def _parts(node: ast.expr) -> list[ast.expr]:
    """What decides what an expression is: both sides of an operation, what is indexed."""
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return [node.value]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else []


def _given(facts: Facts, name: ast.Name) -> Iterator[ast.expr]:
    """What assignments give a name, each in its place."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    for store in scope.stores.get(name.id, ()) if scope is not None else ():
        up = facts.scopes.parents.get(store)
        s = facts.scopes.parents.get(up) if isinstance(up, ast.Tuple) else up
        value = s.value if isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else None
        if isinstance(up, ast.Tuple) and isinstance(value, ast.Tuple) and len(value.elts) == len(up.elts):
            yield value.elts[up.elts.index(store)]  # type: ignore[arg-type]
        elif value is not None and not isinstance(up, ast.Tuple):
            yield value

"""What a test asks of the batch: its values, which a share has otherwise, or what every share of it has alike."""

from __future__ import annotations

import ast

from .arguments import argument_at
from .batch_views import numbers
from .nodes import children

OF_ALL = ("dtype", "device", "ndim", "dim", "requires_grad", "training", "is_cuda")  # the same of every share
ASKS_KIND = ("isinstance", "hasattr", "callable", "type")
SAME = (ast.Is, ast.IsNot, ast.In, ast.NotIn)  # what it is, which keys it has


def asks_values(test: ast.AST, part: set[str]) -> bool:
    """Whether a test asks for more of the batch than what every share of it has alike."""
    if isinstance(test, ast.Name):
        return test.id in part
    if isinstance(test, ast.Compare) and (all(isinstance(op, SAME) for op in test.ops) or _of_shapes(test)):
        return False
    if isinstance(test, ast.Attribute) and test.attr in OF_ALL:
        return False
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id in ASKS_KIND:
        return False
    if isinstance(test, ast.Subscript) and isinstance(test.value, ast.Attribute) and test.value.attr == "shape":
        return numbers(test.slice) in ([], [0]) and asks_values(test.value.value, part)
    match test:
        case ast.Call(func=ast.Attribute(value=of, attr="size")) if (asked := argument_at(test, "dim", 0)) is not None:
            return numbers(asked) in ([], [0]) and asks_values(of, part)
        case ast.Call(func=ast.Name(id="len"), args=[sized]) if _is_shape(sized):
            return False
    return any(asks_values(child, part) for child in children(test))


def _of_shapes(test: ast.Compare) -> bool:
    """`out.shape != y.shape`: those of two shares are alike where those of two batches are."""
    return all(map(_is_shape, (test.left, *test.comparators)))


def _is_shape(e: ast.expr) -> bool:
    if isinstance(e, ast.Call):
        return isinstance(e.func, ast.Attribute) and e.func.attr == "size" and not e.args and not e.keywords
    return isinstance(e, ast.Attribute) and e.attr == "shape"

"""Values that are shown to have dimensions: `torch.ones(3)`, a loss for each sample, a name that is given such."""

from __future__ import annotations

import ast

from .arguments import is_separate
from .plain import VARIABLE
from .script import Facts

DEEP = 5  # names of names
SIZED = {f"torch.{name}" for name in ("ones", "zeros", "empty", "rand", "randn", "full")}
LISTED = {f"torch.{name}" for name in ("tensor", "as_tensor", "Tensor", "FloatTensor", "DoubleTensor", "LongTensor")}
SEVERAL = {f"torch.{name}" for name in ("stack", "cat", "arange", "linspace", "logspace", "hstack", "vstack", "eye")}
ALIKE = {f"torch.{name}" for name in ("exp", "log", "sqrt", "abs", "neg", "sigmoid", "relu", "square", "clone")} | {
    f"torch.{name}_like" for name in ("ones", "zeros", "empty", "rand", "randn", "full")
}
KEEP = set("cpu cuda to detach float double half exp log sqrt abs pow clone requires_grad_ data contiguous".split())
REDUCE = ("sum", "mean")
SHAPED = ("view", "reshape", "unsqueeze", "expand", "repeat", "flatten")


def has_dimensions(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """Whether a value, or one of those that a name is given, has more than one number, as far as that shows."""
    if depth > DEEP:
        return False
    if isinstance(node, (ast.Name, ast.Attribute)):
        if isinstance(node, ast.Attribute) and node.attr in KEEP:
            return has_dimensions(facts, node.value, depth)
        given = _given(facts, node)
        return _is_gone_through(facts, node) or any(has_dimensions(facts, v, depth + 1) for v in given)
    if isinstance(node, ast.BinOp):
        return any(has_dimensions(facts, side, depth) for side in (node.left, node.right))
    if isinstance(node, ast.Subscript):  # a row of it, or the number of a sample
        return has_dimensions(facts, node.value, depth)
    return isinstance(node, ast.Call) and _gives_several(facts, node, depth)


def _gives_several(facts: Facts, call: ast.Call, depth: int) -> bool:
    full = facts.names.resolve(call.func) or ""
    first = call.args[0] if call.args else None
    if full in SIZED or full in LISTED:
        several = _is_list(first) if full in LISTED else len(call.args) > 1 and full != "torch.full"
        return several or (full in SIZED and _is_size(first))
    if full in SEVERAL or is_separate(call):
        return True
    if first is not None and (full in ALIKE or full == VARIABLE):
        return has_dimensions(facts, first, depth)
    f = call.func
    if not isinstance(f, ast.Attribute) or full:
        return False
    if f.attr in SHAPED:
        return bool(call.args)
    if f.attr in REDUCE:
        return bool(call.args or call.keywords) and _is_of_each(facts, f.value, depth)
    return f.attr in KEEP and has_dimensions(facts, f.value, depth)


def _is_of_each(facts: Facts, node: ast.expr, depth: int) -> bool:
    """A loss that is asked for all its numbers, which a script asks for that knows losses without dimensions."""
    if depth > DEEP:
        return False
    if isinstance(node, ast.Name):
        return any(_is_of_each(facts, v, depth + 1) for v in _given(facts, node))
    if not isinstance(node, ast.Call):
        return False
    f = node.func
    return is_separate(node) or (isinstance(f, ast.Attribute) and f.attr in KEEP and _is_of_each(facts, f.value, depth))


def _is_size(node: ast.expr | None) -> bool:
    """A size other than one number's, which a script of old times gave a loss that begins with nothing."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return any(_is_size(e) for e in node.elts)
    return node is not None and getattr(node, "value", None) != 1


def _is_list(node: ast.expr | None) -> bool:
    return isinstance(node, (ast.List, ast.Tuple)) and (len(node.elts) > 1 or any(_is_list(e) for e in node.elts))


def _given(facts: Facts, node: ast.Name | ast.Attribute) -> list[ast.expr]:
    """What assignments of the file, and callers, give it."""
    if isinstance(node, ast.Attribute):
        return facts.devices.attribute_values.get(node.attr, [])
    home = facts.scopes.scope_of(node).lookup(node.id)
    if home is None or home.is_class:
        return []
    passed = facts.devices.given(home, node.id) if node.id in home.params else ()
    return [*(facts.devices.assigned(node.id, home) or ()), *(passed or ())]


def _is_gone_through(facts: Facts, node: ast.Name | ast.Attribute) -> bool:
    """Whether the function that asks for it takes another part of its `data`, too: `losses.data[1]`."""
    text, around = ast.unparse(node), facts.scopes.scope_of(node)
    for a in facts.attributes.get("data", ()):
        up = facts.scopes.parents.get(a)
        if not (isinstance(up, ast.Subscript) and up.value is a) or ast.unparse(a.value) != text:
            continue
        if facts.scopes.scope_of(a) is around and not _is_zero(up.slice):
            return True
    return False


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0

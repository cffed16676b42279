"""The samples of a batch by their numbers: `torch.arange(len(x))`, `torch.linspace(0, 1, len(x))` as a weight of each.

In a share of the batch a sample has another number. As a place (`out[torch.arange(len(x)), y]`) it is the sample's own.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import argument_at
from .batch_operations import KEEPS_SHAPE, OVER, REDUCES, SAME_ORDER, SIZES, TIMES
from .batch_values import PLAIN, Value, replace
from .nodes import walk

if TYPE_CHECKING:
    from .mixing import Run

# what `Value.places` may be: the samples' numbers in their order, something made of them, or no whole numbers any more
EACH, SOME, VALUES = "each", "some", "values"
WHOLE = "whole"  # the samples' numbers, not as integers: `torch.linspace(0, n - 1, n)`
FRACTIONS = {VALUES, WHOLE}
ALIKE = {"ones", "full"}
ADDS_UP = {"cumsum", "cumprod"}
SPACED = {"linspace", "logspace", "geomspace"}
MAKES = {"tensor", "as_tensor", "from_numpy", "array", "asarray"}
FLOATS = {
    "float",
    "double",
    "half",
    "div",
    "divide",
    "true_divide",
    "exp",
    "sqrt",
    "cos",
    "sin",
    "softmax",
    "normalize",
}
SHAPES = {"view", "reshape", "unsqueeze", "expand", "expand_as", "squeeze", "flatten", "ravel", "repeat", "view_as"}
COMPARES = {"eq", "ne", "lt", "gt", "le", "ge"}
OFFSETS = {"add", "sub", "subtract"}  # of the numbers: the samples' places in a longer list
MEETS = TIMES | OVER | COMPARES | {"where", "pow", "lerp", "dot", "mv", "matmul", "maximum", "minimum"}


def numbered(call: ast.Call, name: str, values: list[Value]) -> Value:
    """What `arange`, or one of SPACED, makes of what counts the samples."""
    if not any(v.counts for v in values):
        return PLAIN
    if name in SPACED:
        return Value(places=WHOLE if name == "linspace" and _are_all(call) else VALUES)
    first = call.args[0] if len(call.args) > 1 else None
    plain = first is None or (isinstance(first, ast.Constant) and first.value == 0)
    return Value(counts=True, places=EACH if plain else SOME)


def alike(run: Run, call: ast.Call) -> Value | None:
    """`torch.ones(len(x))`, `torch.full((len(x),), 0.1)`: one number for each sample, and no more dimensions."""
    size = call.args[0] if call.args else None
    if isinstance(size, (ast.Tuple, ast.List)) and len(size.elts) == 1:
        size = size.elts[0]
    several = size is None or any(not isinstance(a, ast.Constant) for a in call.args[1:])
    return Value(alike=True) if size is not None and not several and run.value(size).counts else None


def by_their_number(run: Run, call: ast.Call, place: int) -> bool:
    """`losses.topk(int(0.75 * len(losses)))`: as many as there are samples, times something, are taken of them."""
    k = argument_at(call, "k", place)
    nodes = walk(k) if k is not None else []
    for n in [n for n in nodes if isinstance(n, ast.Name)]:
        home = run.facts.scopes.scope_of(n).lookup(n.id)
        nodes = [*nodes, *(x for v in (run.facts.devices.assigned(n.id, home) or () if home else ()) for x in walk(v))]
    return any(run.value(n).counts for n in nodes if isinstance(n, (ast.Call, ast.Subscript)))


def _are_all(call: ast.Call) -> bool:
    """`linspace(0, n - 1, n)`"""
    start, end, steps = (argument_at(call, name, i) for i, name in enumerate(("start", "end", "steps")))
    if not (isinstance(start, ast.Constant) and start.value == 0) or steps is None or end is None:
        return False
    return ast.unparse(end) == f"{ast.unparse(steps)} - 1"


def listed(e: ast.ListComp | ast.GeneratorExp, over: list[Value], found: Value) -> Value:
    """`[k / 10 for k in range(len(x))]`"""
    if found.kind != "plain" or not any(v.counts for v in over):
        return found
    element = e.elt
    targets = {n.id for g in e.generators for n in walk(g.target, ast.Name)}
    if not any(n.id in targets for n in walk(element, ast.Name)):
        return found
    same = isinstance(element, ast.Name) and not any(g.ifs for g in e.generators)
    return replace(found, places=EACH if same else VALUES if _divides(element) else SOME)


def _divides(e: ast.expr) -> bool:
    return any(isinstance(n, ast.Div) or (isinstance(n, ast.Constant) and isinstance(n.value, float)) for n in walk(e))


def carried(name: str, of: Value) -> Value:
    """What an operation, or a method, makes of such numbers."""
    name = name.rstrip("_")
    if of.alike:
        return Value(places=VALUES) if name in ADDS_UP else of  # torch.ones(n).cumsum(0)
    if not of.places or name in MAKES | SHAPES | SAME_ORDER:
        return of
    if name in SIZES or (name in REDUCES and name not in KEEPS_SHAPE) or name == "item":
        return PLAIN
    return replace(of, counts=False, places=VALUES if name in FLOATS or of.places in FRACTIONS else SOME)


def together(left: Value, right: Value, op: ast.operator | None) -> str:
    """What two plain values are together."""
    if not left.places and not right.places:
        return ""
    return VALUES if isinstance(op, ast.Div) or {left.places, right.places} & FRACTIONS else SOME


def meet(run: Run, e: ast.AST, left: Value, right: Value, op: ast.operator | None) -> None:
    """Note where samples are weighed, or compared, by their numbers: `losses * torch.arange(len(x))`."""
    places = left.places or right.places
    offset = isinstance(op, (ast.Add, ast.Sub, ast.Mod, ast.FloorDiv)) and not isinstance(e, ast.Compare)
    if places and (places in FRACTIONS or not offset):
        run.flow.mixes.append(e)


def meets(name: str, values: list[Value]) -> bool:
    """The same of an operation by its name: `losses.mul(w)`, `torch.where(w > 3, losses, 0)`."""
    places = {v.places for v in values if v.places}
    return any(v.kind == "batch" for v in values) and (
        (bool(places) and name in MEETS) or (bool(FRACTIONS & places) and name in OFFSETS)
    )

"""Python's own functions and lists in a step: what goes through samples as they are, and what brings them together."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .batch_operations import PAIRS_UP
from .batch_values import PLAIN, Value, replace

if TYPE_CHECKING:
    from .mixing import Run

# built-in functions that hand on what they are given, and those that count it
PASSES = {"enumerate", "zip", "reversed", "list", "tuple", "sorted", "iter", "len", "range"}


def passed(run: Run, call: ast.Call, name: str, args: list[Value]) -> Value:
    """`len(x)`, `range(len(x))`, and what goes through values as they are: `enumerate(outs)`."""
    first = args[0] if args else PLAIN
    if name == "len":
        return replace(PLAIN, counts=first.kind == "batch" and first.dim == 0 and not first.holds)
    if name == "range":
        return replace(PLAIN, counts=any(v.counts for v in args))
    if name == "list" and first.counts:
        return first
    if name == "enumerate":
        return run.held([PLAIN, replace(first, items=())], range(2)) if first.holds else first
    if name == "zip" and any(v.holds for v in args):
        return run.held([replace(v, holds=False, items=()) for v in args], range(len(args)))
    if name == "zip" and len({v.cut for v in args if v.kind == "batch" and v.dim == 0}) > 1:
        run.flow.mixes.append(call)  # zip(z[:-1], z[1:])
    of_batch = run.joined(args)
    return replace(of_batch, items=()) if of_batch.holds else of_batch


def by_places(over: ast.expr, value: Value) -> bool:
    """Whether each part of what a loop goes through is a tuple whose places are known: of `zip(names, outs)`."""
    if not (isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id in ("zip", "enumerate")):
        return False
    return value.holds and bool(value.items)


def pairs_up(full: str | None, args: list[Value]) -> bool:
    """`itertools.combinations(range(len(z)), 2)`; of a list of views the pairs are each sample's own."""
    return full in PAIRS_UP and any(v.counts or (v.kind == "batch" and not v.holds) for v in args)


def groups(run: Run, kept: ast.expr, values: list[Value]) -> bool:
    """`by_class[int(k)].append(z)` and `by_class.setdefault(k, []).append(z)`: samples come together by what they are.

    Of a name alone: what the module keeps is read at the end of an epoch, from all batches.
    """
    key: ast.expr | None = None
    if isinstance(kept, ast.Subscript):
        key, kept = kept.slice, kept.value
    elif isinstance(kept, ast.Call) and isinstance(kept.func, ast.Attribute) and kept.func.attr == "setdefault":
        key, kept = next(iter(kept.args), None), kept.func.value
    if key is None or not isinstance(kept, ast.Name) or run.joined(values).kind != "batch":
        return False
    return run.value(key).kind == "batch"

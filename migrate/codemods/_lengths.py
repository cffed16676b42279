"""Lengths of sequences, which `pack_padded_sequence` takes on the CPU alone: where a batch is placed, they are too.

`.cpu()` of what shows itself to be a tensor; `torch.as_tensor(lengths, device="cpu")` of what may be a list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.always_before import always_before, last_of
from ..facts.arguments import argument, argument_at
from ..facts.arrays import on_host
from ..facts.back_from_cpu import goes_to_cpu
from ..facts.placed import MAKES_TENSORS
from ..facts.script import Facts
from ..facts.tensor_methods import METHODS
from .base import Insertion

PACKS = "torch.nn.utils.rnn.pack_padded_sequence"
OF_NUMBERS = {"list", "tuple", "sorted", "map", "range", "len", "max", "min", "sum", "int", "reversed"}
LISTS = ast.List | ast.Tuple | ast.ListComp | ast.GeneratorExp | ast.Constant
DEPTH = 6  # of names that are made of names


def lengths_given(facts: Facts) -> Iterator[ast.expr]:
    """What packing is given as lengths, but for what shows itself to be on the CPU already."""
    for call in facts.walk(ast.Call) if "pack_padded_sequence" in facts.text.text else ():
        given = argument_at(call, "lengths", 1) if facts.names.resolve(call.func) == PACKS else None
        if given is not None and not isinstance(given, ast.Starred) and not _on_cpu(facts, given, 0):
            yield given


def is_tensor(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """Whether a value shows itself to be a tensor: a method of tensors is called of it, or torch gives it."""
    if depth > DEPTH:
        return False
    if isinstance(node, ast.Call):
        f = node.func
        full = facts.names.resolve(f) or ""
        return full.startswith("torch.") or (not full and isinstance(f, ast.Attribute) and f.attr in METHODS)
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return is_tensor(facts, node.value, depth + 1) or getattr(node, "attr", "") == "data"
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    if scope is None or not isinstance(node, ast.Name):
        return False
    ups = (facts.scopes.parents.get(r) for r in facts.scopes.reads(node.id, scope))
    calls = (up for up in ups if isinstance(up, ast.Attribute) and up.attr in METHODS)
    if any(isinstance(facts.scopes.parents.get(up), ast.Call) for up in calls):
        return True
    return any(v is not None and is_tensor(facts, v, depth + 1) for v in _values(facts, node))


def _on_cpu(facts: Facts, node: ast.expr, depth: int) -> bool:
    """Whether a value is of the CPU whatever places the batch: numbers, and tensors that are made there."""
    if isinstance(node, LISTS) or on_host(facts, node):
        return True
    if isinstance(node, ast.Call):
        f = node.func
        if goes_to_cpu(facts, node) or (isinstance(f, ast.Name) and f.id in OF_NUMBERS):
            return True
        full = facts.names.resolve(f)
        if full in MAKES_TENSORS:
            return True
        if full is None and isinstance(f, ast.Attribute):
            return f.attr in METHODS and depth < DEPTH and _on_cpu(facts, f.value, depth + 1)
        return full is not None and bool(node.args) and depth < DEPTH and _on_cpu(facts, node.args[0], depth + 1)
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return depth < DEPTH and _on_cpu(facts, node.value, depth + 1)
    if isinstance(node, ast.BinOp):
        return depth < DEPTH and all(_on_cpu(facts, p, depth + 1) for p in (node.left, node.right))
    if not isinstance(node, ast.Name) or depth > DEPTH:
        return False
    values = _values(facts, node)
    return bool(values) and all(v is not None and _on_cpu(facts, v, depth + 1) for v in values)


def _values(facts: Facts, name: ast.Name) -> list[ast.expr | None]:
    """What a name is given, by assignments and by the calls of its function; None for what does not show."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    if scope is None:
        return []
    found: list[ast.expr | None] = []
    here, stores = facts.scopes.statement_of(name), facts.placed.reaching(name, scope)
    for store in last_of(facts, name, stores):
        up = facts.scopes.parents.get(store)
        s = facts.scopes.parents.get(up) if isinstance(up, (ast.Tuple, ast.List)) else up
        value = s.value if isinstance(s, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(up, ast.Tuple) and isinstance(value, ast.Tuple) and len(value.elts) == len(up.elts):
            value = value.elts[up.elts.index(store)]  # type: ignore[arg-type]
        found.append(value)
    bound = (facts.scopes.statement_of(store) for store in stores)
    if name.id in scope.params and not any(isinstance(s, ast.Assign) and always_before(facts, s, here) for s in bound):
        found += _given(facts, name.id, scope.node)
    return found


def _given(facts: Facts, name: str, f: ast.AST) -> list[ast.expr | None]:
    """What calls give a parameter; what calls a network's forward does not show."""
    if not isinstance(f, ast.FunctionDef) or f.name == "forward":
        return [None]
    bound = facts.classes.holder(f) is not None
    calls = facts.classes.uses_of(f)
    return [argument(c, f, name, bound) if isinstance(c, ast.Call) else None for c in calls] or [None]


def in_file(facts: Facts) -> tuple[str, Insertion | None]:
    """What the file calls torch, and the import that it needs for it."""
    for s in facts.tree.body:
        for a in s.names if isinstance(s, ast.Import) else ():
            if a.name == "torch" or (a.name.startswith("torch.") and a.asname is None):
                return a.asname or "torch", None
    return "torch", None if facts.scopes.module.stores.get("torch") else Insertion(1, "", ["import torch"])


def as_on_cpu(torch: str) -> Any:
    """The rewrite of a value that may be a list."""

    def rewritten(original: Any, updated: Any) -> Any:
        import libcst as cst

        made = cst.parse_expression(f'{torch}.as_tensor(x, device="cpu")')
        return made.with_changes(args=[made.args[0].with_changes(value=updated), *made.args[1:]])  # type: ignore[attr-defined]

    return rewritten

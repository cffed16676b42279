"""Batches whose samples a collate_fn joins end to end, graphs or trees of different sizes: a mean over all rows is for
the shares of a batch another one than for the whole, as their rows are not as many as their samples say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.nodes import FUNCTIONS, walk
from ..facts.script import Facts
from .called_networks import works_with_network
from .criteria import is_loss_of_torch
from .nodes import local_function, pairs
from .padded import collating, functions
from .recipe import CannotLift, DataPass
from .shown import SHOWS

JOINS = {"torch.cat", "torch.concat", "torch.concatenate", "numpy.concatenate"}
ADDS_ONE = ("unsqueeze", "expand_dims", "newaxis")  # what joins those puts one row for each sample
ROWS, LISTED = "rows", "a list"  # what a function gives: samples joined, or a list that the step may join


def joined_batches(facts: Facts, train: DataPass) -> CannotLift | None:
    """Why the step needs whole batches: what it computes a loss or a metric of are the joined rows of the samples."""
    for home in (facts, *(there for o in facts.others if "collate_fn" in o.text and (there := o.facts()) is not None)):
        for given in collating(home):
            for there, f in functions(home, given):
                names = _named(train, _gives(there, f))
                use = next(_uses(facts, train, names), None) if names else None
                if use is not None:
                    where = "" if there is facts else " of another file"
                    says = f"`{home.short(given)}`{where} joins samples of which each may have any number of rows"
                    return CannotLift(use, says)
    return None


# -- what the function gives ---------------------------------------------------------------------------------------


def _gives(facts: Facts, f: ast.AST) -> dict[int, str]:
    """The places of what it returns where the samples are joined, or listed."""
    if not isinstance(f, FUNCTIONS):
        return {}
    returned = f.body if isinstance(f, ast.Lambda) else next((s.value for s in walk(f, ast.Return)), None)
    parts = returned.elts if isinstance(returned, (ast.Tuple, ast.List)) else [returned]
    kinds = {i: _kind(facts, f, e, 0) for i, e in enumerate(parts) if e is not None}
    return {i: kind for i, kind in kinds.items() if kind is not None}


def _kind(facts: Facts, f: ast.AST, e: ast.expr, depth: int) -> str | None:
    if depth > 4:
        return None
    if isinstance(e, ast.Name):
        made = [_kind(facts, f, v, depth + 1) for v in _values(f, e.id)]
        return ROWS if ROWS in made else LISTED if LISTED in made else None
    if isinstance(e, ast.Call):
        if facts.names.resolve(e.func) in JOINS:
            along = [*e.args[1:2], *(k.value for k in e.keywords if k.arg in ("dim", "axis"))]
            first = all(isinstance(a, ast.Constant) and a.value == 0 for a in along)
            return ROWS if e.args and first and _of_any_length(facts, f, e.args[0], 0) else None
        if isinstance(e.func, ast.Attribute):  # torch.cat(xs).long()
            return _kind(facts, f, e.func.value, depth + 1) if facts.names.resolve(e.func) is None else None
        return None
    if isinstance(e, ast.ListComp):
        return LISTED if _of_any_length(facts, f, e, 0) else None
    return LISTED if isinstance(e, ast.Constant) and e.value == "zip" else None


def _values(f: ast.AST, name: str) -> Iterator[ast.expr]:
    """What a name is given: by assignments, of a `zip(*batch)` as one list of samples, of appends as such a list."""
    for s in walk(f, ast.Assign):
        for target, value in pairs(s):
            if isinstance(target, ast.Name) and target.id == name:
                yield value
            elif isinstance(target, (ast.Tuple, ast.List)) and _is_zip(value):
                yield from (ast.Constant("zip") for t in target.elts if isinstance(t, ast.Name) and t.id == name)
    for call in walk(f, ast.Call):
        of = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "append" else None
        if call.args and isinstance(of, ast.Name) and of.id == name:
            yield ast.ListComp(call.args[0], [])


def _is_zip(value: ast.expr) -> bool:
    called = [n.func.id for n in walk(value, ast.Call) if isinstance(n.func, ast.Name)]
    return "zip" in called and any(isinstance(n, ast.Starred) for n in walk(value))


def _of_any_length(facts: Facts, f: ast.AST, listed: ast.expr, depth: int) -> bool:
    """Whether what is joined is a list of the samples' own tensors, which may have any number of rows."""
    if depth > 4:
        return False
    if isinstance(listed, ast.Name):
        values = list(_values(f, listed.id))
        return bool(values) and all(_of_any_length(facts, f, v, depth + 1) for v in values if not _is_empty(v))
    if isinstance(listed, ast.Constant):
        return listed.value == "zip"
    if isinstance(listed, (ast.ListComp, ast.GeneratorExp)):
        words = {n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in walk(listed.elt)}
        made = any(
            (facts.names.resolve(c.func) or "").startswith(("torch.", "numpy.")) for c in walk(listed.elt, ast.Call)
        )
        indexed = any(isinstance(n, ast.Constant) and n.value is None for n in walk(listed.elt))
        return not (words & set(ADDS_ONE) or made or indexed)
    return (
        isinstance(listed, ast.Call)
        and getattr(listed.func, "id", "") in ("list", "tuple")
        and bool(listed.args)
        and (_is_zip(listed.args[0]) or _of_any_length(facts, f, listed.args[0], depth + 1))
    )


def _is_empty(value: ast.expr) -> bool:
    return isinstance(value, ast.List) and not value.elts


# -- what the step does with it ------------------------------------------------------------------------------------


def _named(train: DataPass, gives: dict[int, str]) -> dict[str, str]:
    """The step's names for them: `for x, y in loader:`, or `x, y = batch` in it."""
    targets = [train.target]
    if isinstance(train.target, ast.Name):
        if set(gives) == {0}:
            return {train.target.id: gives[0]}
        assigned = (s for s in train.body if isinstance(s, ast.Assign))
        of = train.target.id
        targets = [s.targets[0] for s in assigned if isinstance(s.value, ast.Name) and s.value.id == of]
    found: dict[str, str] = {}
    for target in targets:
        for i, t in enumerate(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else ():
            if i in gives and isinstance(t, ast.Name):
                found[t.id] = gives[i]
    return found


def _uses(facts: Facts, train: DataPass, names: dict[str, str]) -> Iterator[ast.Call]:
    """The calls of losses and of the script's own functions that are given joined rows."""
    rows = {name for name, kind in names.items() if kind == ROWS}
    for s in train.body:
        for part in walk(s, ast.Assign):
            for target, value in pairs(part):
                if _is_rows(facts, value, rows, names):
                    rows |= {n.id for n in walk(target, ast.Name)}
        for call in walk(s, ast.Call):
            given = [*call.args, *(k.value for k in call.keywords)]
            if any(_is_rows(facts, a, rows, names) for a in given) and _computes(facts, call):
                yield call


def _is_rows(facts: Facts, e: ast.expr, rows: set[str], names: dict[str, str]) -> bool:
    """The rows themselves, moved or of another type or shape; `torch.cat(x)` of a list of the samples."""
    while True:
        if isinstance(e, ast.Call) and facts.names.resolve(e.func) in JOINS and e.args:
            return isinstance(e.args[0], ast.Name) and names.get(e.args[0].id) == LISTED
        if isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and facts.names.resolve(e.func) is None:
            e = e.func.value
        elif isinstance(e, (ast.Subscript, ast.Attribute)):
            e = e.value
        else:
            return isinstance(e, ast.Name) and e.id in rows


def _computes(facts: Facts, call: ast.Call) -> bool:
    full = facts.names.resolve(call.func)
    if full is not None and full.startswith("torch."):
        return is_loss_of_torch(full)
    last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if last in (*SHOWS, "append", "len", "int", "float", "list"):
        return False
    if "loss" in last.lower() or "crit" in last.lower():
        return True
    own = isinstance(call.func, ast.Name) and local_function(facts, call.func) is not None
    return own or (isinstance(call.func, ast.Name) and not works_with_network(facts, call))

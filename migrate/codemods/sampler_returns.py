"""T4: a DistributedSampler that a function gives back beside its loader: `return loader, sampler`."""

from __future__ import annotations

import ast
from typing import Any

from ..facts.nodes import walk
from ..facts.script import Facts
from .argument_rewrites import DropArgument
from .sampler_arguments import goes

Place = tuple[ast.Tuple, int]


class DropElement(DropArgument):
    """The statement whose tuple is without the element at a place; the one that is left stands alone."""

    def __call__(self, original: Any, updated: Any) -> Any:
        import libcst as cst

        whole: Any = updated.value if isinstance(updated, cst.Return) else updated.targets[0].target
        *kept, last = [e for i, e in enumerate(whole.elements) if i != self.place]
        new: Any = last.value
        if kept:
            new = whole.with_changes(elements=[*kept, last.with_changes(comma=whole.elements[-1].comma)])
        if isinstance(updated, cst.Return):
            return updated.with_changes(value=new)
        return updated.with_changes(targets=[updated.targets[0].with_changes(target=new)])


def unpacked(facts: Facts, read: ast.expr) -> tuple[list[Place], list[ast.Name]] | None:
    """Where the sampler stands in what a function returns and in what its calls are unpacked to, and its names there.

    None where it is returned in another way, or where a call is not unpacked at once.
    """
    whole = facts.scopes.parents.get(read)
    f = next((up for up in facts.scopes.ancestors(read) if isinstance(up, (ast.FunctionDef, ast.Lambda))), None)
    if not (isinstance(whole, ast.Tuple) and isinstance(facts.scopes.parents.get(whole), ast.Return)):
        return None
    if not isinstance(f, ast.FunctionDef) or _is_shown(facts, f):
        return None
    place, places = whole.elts.index(read), list[Place]()
    own = [n for n in walk(f, ast.Return) if facts.scopes.scope_of(n).node is f]
    for value in (n.value for n in own):
        if not _has_one(facts, value, place) or len(value.elts) != len(whole.elts):  # type: ignore[union-attr]
            return None
        places.append((value, place))  # type: ignore[arg-type]
    names: list[ast.Name] = []
    for use in facts.devices.uses_of_function(f):
        up = facts.scopes.parents.get(use)
        target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
        if not (isinstance(use, ast.Call) and isinstance(target, ast.Tuple) and len(target.elts) == len(whole.elts)):
            return None
        name = target.elts[place]
        if not isinstance(name, ast.Name) or any(isinstance(e, ast.Starred) for e in target.elts):
            return None
        places.append((target, place))
        names.append(name)
    return (places, names) if names else None


def _is_shown(facts: Facts, f: ast.FunctionDef) -> bool:
    """Whether other files may unpack what a function returns."""
    public = facts.is_library and facts.scopes.scope_of(f) is facts.scopes.module and not f.name.startswith("_")
    return public or f.name in facts.read_elsewhere


def _has_one(facts: Facts, value: ast.expr | None, place: int) -> bool:
    """Whether a tuple has a sampler or None at a place, and something else beside it."""
    if not isinstance(value, ast.Tuple) or place >= len(value.elts):
        return False
    if any(isinstance(e, ast.Starred) for e in value.elts) or not goes(facts, value.elts[place], 0):
        return False
    return any(not goes(facts, e, 0) for e in value.elts)

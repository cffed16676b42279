"""Functions of a file that move what they are given: `def put(*tensors): return [t.to(device) for t in tensors]`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptmigrate.migrate.facts.nodes import walk

if TYPE_CHECKING:
    from ..file import File

MOVES = {"to", "cuda"}


def moved_by_function(call: ast.Call, given: ast.AST, file: File) -> bool:
    """Whether the one function of this name moves what a call gives it: `given` is an argument of the call."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    named = [f for f in file.nodes.functions if getattr(f, "name", "") == name]
    if len(named) != 1:
        return False
    moved = _moved(named[0])
    return bool(moved) and _parameter(call, given, named[0].args) in moved


def _parameter(call: ast.Call, given: ast.AST, a: ast.arguments) -> str:
    """The name that an argument gets."""
    of_names, of_places = (p.arg if p is not None else "" for p in (a.kwarg, a.vararg))
    own = [p.arg for p in (*a.posonlyargs, *a.args)]
    if isinstance(given, ast.keyword):
        return given.arg if given.arg in {*own, *(p.arg for p in a.kwonlyargs)} else of_names
    if own[:1] == ["self"]:
        del own[0]
    place = call.args.index(given) if given in call.args else len(own)
    starred = any(isinstance(e, ast.Starred) for e in call.args[: place + 1])
    return "" if starred else own[place] if place < len(own) else of_places


def _moved(f: ast.AST) -> set[str]:
    """The names whose tensors a function moves, one after another where it goes through them."""
    found = {n.value.id for n in walk(f, ast.Attribute) if n.attr in MOVES and isinstance(n.value, ast.Name)}
    kinds: Sequence[type[ast.ListComp] | type[ast.GeneratorExp]] = (ast.ListComp, ast.GeneratorExp)
    for g in (g for kind in kinds for c in walk(f, kind) for g in c.generators):
        if isinstance(g.target, ast.Name) and g.target.id in found and isinstance(g.iter, ast.Name):
            found.add(g.iter.id)
    return found

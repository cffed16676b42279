"""Values carried from batch to batch: counters, clocks and sums are; a hidden state needs the whole batch."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..facts.matched import capturing
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.spelled import spelled
from .chunks import Chunk
from .nodes import walk_here
from .reads import chosen_once, exposed, stored
from .recipe import CannotLift, Recipe
from .running import find_running
from .zeros import zeroed


def check_matched(chunks: Sequence[Chunk]) -> None:
    """Raise for names that a `match` binds, which are texts in its patterns: attributes would be other names."""
    for m in (m for chunk in chunks for s in chunk.statements for m in walk_here(s) if isinstance(m, ast.Match)):
        if capturing(m):
            raise CannotLift(m, "a `match` gives names their values")


def check_carried(facts: Facts, recipe: Recipe, chunk: Chunk) -> None:
    """Raise for a value that is carried from batch to batch and is no counter (a hidden state)."""
    passing = chunk.passing
    loop = passing.loop if passing is not None else None
    names = (exposed(chunk.statements) & stored(chunk.statements)) - chosen_once(facts, chunk.statements, loop)
    if passing is not None:
        names -= {n.id for n in walk(passing.target, ast.Name)} | {passing.index or ""}
    if passing is recipe.train:
        names -= find_running(facts, recipe, names)
    own = stored(chunk.statements)  # of the samples, for all that is known here
    if passing is not None:
        own |= {n.id for n in walk(passing.target, ast.Name)}
    _check_room(chunk, own)
    for s in chunk.statements:
        for n in () if isinstance(s, ast.FunctionDef) else walk_here(s):
            if isinstance(n, ast.Assign):
                _check_attribute(facts, n, own)
                for t in n.targets:
                    for x in walk(t, ast.Name):
                        if isinstance(x.ctx, ast.Store) and x.id in names:
                            _accept_carried(facts, n, x.id, own - names)
            elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and n.target.id in names:
                if isinstance(n.op, (ast.Add, ast.Sub)) or zeroed(facts, n) is not None:
                    continue
                raise CannotLift(n, f"`{n.target.id}` is carried from batch to batch")


def _check_attribute(facts: Facts, assign: ast.Assign, own: set[str]) -> None:
    """Raise for `self.ema = 0.9 * self.ema + loss.item()`, and for a `self.best` that a test around asks for."""
    target = assign.targets[0]
    root = target
    while isinstance(root, ast.Attribute):
        root = root.value
    if root is target or not isinstance(root, ast.Name) or root.id in own or not _reads_any_of(assign.value, own):
        return
    tests = [up.test for up in facts.scopes.ancestors(assign) if isinstance(up, ast.If)]
    if any(spelled(a) == spelled(target) for e in (assign.value, *tests) for a in walk(e, ast.Attribute)):
        raise CannotLift(assign, f"`{spelled(target)}` is carried from batch to batch")


def _reads_any_of(value: ast.expr, names: set[str]) -> bool:
    return any(n.id in names for n in walk(value, ast.Name))


def _check_room(chunk: Chunk, own: set[str]) -> None:
    """Raise for a tensor made before the batches, with room for one: a share would be spread over all of it."""
    resized = set()
    for n in (n for s in chunk.statements for n in walk_here(s)):
        if not (isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)):
            continue
        root: ast.expr = n.func.value
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in own:
            continue
        if n.func.attr.startswith("resize"):
            resized.add(root.id)
        given = {x.id for a in n.args for x in walk(a, ast.Name)}
        if n.func.attr == "copy_" and given & own and root.id not in resized:
            raise CannotLift(n, f"`{root.id}` has room for a whole batch")


def _accept_carried(facts: Facts, assign: ast.Assign, name: str, own: set[str]) -> None:
    """A clock, a constant, or a sum of what every process has alike may be carried."""
    value = assign.value
    if isinstance(value, ast.Constant):
        return
    if isinstance(value, ast.Call) and (facts.names.resolve(value.func) or "").split(".")[0] in ("time", "datetime"):
        return
    if (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Add)
        and isinstance(value.left, ast.Name)
        and value.left.id == name
        and not any(n.id in own for n in walk(value.right, ast.Name))
    ):
        return
    raise CannotLift(assign, f"`{name}` is carried from batch to batch")

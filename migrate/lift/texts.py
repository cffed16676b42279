"""Code that asks for names by their text: `locals()`, `"...".format(**vars())`, `eval(...)`. A lift moves the names."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from .recipe import CannotLift, Recipe

ALL_OF_THEM = ("locals", "globals", "vars", "dir")  # without an argument
TEXTS = ("eval", "exec")


def by_text(root: ast.AST) -> ast.Call | None:
    """The first such call in `root`."""
    calls = (n for n in walk(root) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
    return next((c for c in calls if c.func.id in TEXTS or (c.func.id in ALL_OF_THEM and not c.args)), None)  # type: ignore[attr-defined]


def check_texts(recipe: Recipe) -> None:
    """Raises CannotLift where the loops, or the functions of their passes, do so."""
    functions = [p.function for p in (recipe.train, recipe.evaluate) if p is not None and p.function is not None]
    for root in (recipe.epoch_loop, *functions):
        if (call := by_text(root)) is not None:
            raise CannotLift(call, f"`{ast.unparse(call)}` reads names by their text, which a lift moves")

"""Code that asks for names by their text: `locals()`, `"...".format(**vars())`, `eval(...)`. A lift moves the names."""

from __future__ import annotations

import ast

from ..facts.nodes import once_a_node, walk
from .recipe import CannotLift, Recipe

ALL_OF_THEM = ("locals", "globals", "vars", "dir")  # without an argument
TEXTS = ("eval", "exec")


@once_a_node
def by_text(root: ast.AST) -> ast.Call | None:
    """The first such call in `root`."""
    for n in walk(root):
        name = n.func.id if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) else ""
        if isinstance(n, ast.Call) and (name in TEXTS or (name in ALL_OF_THEM and not n.args)):
            return n
    return None


def check_texts(recipe: Recipe) -> None:
    """Raises CannotLift where the loops, or the functions of their passes, do so."""
    functions = [p.function for p in (recipe.train, recipe.evaluate) if p is not None and p.function is not None]
    for root in (recipe.epoch_loop, *functions):
        if (call := by_text(root)) is not None:
            raise CannotLift(call, f"`{ast.unparse(call)}` reads names by their text, which a lift moves")

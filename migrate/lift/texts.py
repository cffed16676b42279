"""Code that asks for names by their text: `locals()`, `"...".format(**vars())`, `eval(...)`. A lift moves the names."""

from __future__ import annotations

import ast

from ..facts.script import Facts, once_a_file
from .recipe import CannotLift, Recipe

ALL_OF_THEM = ("locals", "globals", "vars", "dir")  # without an argument
TEXTS = ("eval", "exec")


def by_text(facts: Facts, root: ast.AST) -> ast.Call | None:
    """The first such call in `root`; `eval(model, data)` is none where the file has a function of that name."""
    return next((c for c in _of_file(facts) if c is root or root in facts.scopes.ancestors(c)), None)


@once_a_file
def _of_file(facts: Facts) -> list[ast.Call]:
    calls = ((c, c.func) for c in facts.walk(ast.Call))
    return [c for c, f in calls if isinstance(f, ast.Name) and _asks(f.id, c) and _is_builtin(facts, f)]


def _asks(name: str, call: ast.Call) -> bool:
    return name in TEXTS or (name in ALL_OF_THEM and not call.args)


def _is_builtin(facts: Facts, name: ast.Name) -> bool:
    return facts.scopes.scope_of(name).lookup(name.id) is None


def check_texts(facts: Facts, recipe: Recipe) -> None:
    """Raises CannotLift where the loops, or the functions of their passes, do so."""
    functions = [p.function for p in (recipe.train, recipe.evaluate) if p is not None and p.function is not None]
    for root in (recipe.epoch_loop, *functions):
        if (call := by_text(facts, root)) is not None:
            raise CannotLift(call, f"`{ast.unparse(call)}` reads names by their text, which a lift moves")

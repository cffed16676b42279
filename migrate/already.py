"""Whether a file was migrated before."""

from __future__ import annotations

import ast

from .facts.asked_parts import of_runtime
from .facts.runtime_names import RUNTIME, runtime_name
from .facts.script import Facts
from .lift.recipe import LIFTED_FROM


def speaks_of_it(text: str) -> bool:
    """Whether a text may be one that was migrated, as far as its words say."""
    return RUNTIME in text or LIFTED_FROM in text


def already_migrated(facts: Facts) -> bool:
    """The file imports the runtime, or has a class that a loop was lifted to (for Lightning it has no such import).

    A Module that somebody wrote for the runtime is one of its own steps, and looked at as those of Lightning are.
    """
    if any(s.module == RUNTIME for s in facts.walk(ast.ImportFrom)):
        may_be = "_step(" in facts.text.text or facts.imported  # or it has a class for the modules of other files
        return not (may_be and any(_is_own_module(facts, c) for c in facts.walk(ast.ClassDef)))
    trained = facts.classes.run_by_trainer if LIFTED_FROM in facts.text.text else ()
    return any((ast.get_docstring(c) or "").startswith(LIFTED_FROM) for c in trained)


def _is_own_module(facts: Facts, c: ast.ClassDef) -> bool:
    """A Module of the runtime that no loop was lifted to."""
    derives = any(runtime_name(facts, b) == "Module" for b in c.bases) or of_runtime(facts, c)
    return derives and not (ast.get_docstring(c) or "").startswith(LIFTED_FROM)

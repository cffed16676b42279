"""Functions of other files that a result calls in its own course alone, outside of a Module's hooks.

Every process comes there, so that what they save can be waited for: the file may be loaded next.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from .facts.script import facts_of
from .sources import Imports

if TYPE_CHECKING:
    from .project import Migrated

LOADS = "torch.load("


def awaited(done: list[Migrated], path: Path, imports: Imports) -> frozenset[str]:
    """What the results above a file so call, in a project that loads what it saved."""
    above = [m for m in done if m.result is not None and imports.real(path) in imports.project(m.path)]
    texts = [m.result.text for m in above if m.result is not None and m.report.plan in ("module", "manual", "loop")]
    below = set[Path]().union(*(imports.project(m.path) for m in above)) if texts else set()
    loads = any(LOADS in m.result.text for m in done if m.result is not None and imports.real(m.path) in below)
    return _called(texts) if loads else frozenset()


def _called(results: Iterable[str]) -> frozenset[str]:
    inside: set[str] = set()
    outside: set[str] = set()
    for text in results:
        facts = facts_of(text)
        for call in facts.walk(ast.Call):
            f = call.func
            name = f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else ""
            in_class = any(isinstance(up, ast.ClassDef) for up in facts.scopes.ancestors(call))
            (inside if in_class else outside).add(name)
    return frozenset(outside - inside)

"""Functions of other files that a result calls in its own course alone, outside of a Module's hooks.

Every process comes there, so that what they save can be waited for: the file may be loaded next.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from .facts.classes import Function
from .facts.loops import last_part
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
    outside, inside = set[str](), set[str]()
    for text in results:
        facts = facts_of(text)
        of: dict[str, set[str]] = {}  # what each function calls; "" is the script itself
        for call in facts.walk(ast.Call):
            ups = list(facts.scopes.ancestors(call))
            holder = next((up.name for up in reversed(ups) if isinstance(up, Function)), "")
            in_class = any(isinstance(up, ast.ClassDef) for up in ups)
            (inside if in_class else of.setdefault(holder, set())).add(last_part(call.func) or "")
        for _ in of:  # a function that a hook calls is of the hook, and so is what that calls
            inside.update(*(names for f, names in of.items() if f in inside))
        outside.update(*of.values())
    return frozenset(outside - inside)

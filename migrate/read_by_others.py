"""Options that a script set last for itself, `args.device = ...`, and that another file of its project still reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .codemods.remove_unused_devices import RemoveUnusedDevices
from .facts.option_holders import OPTIONS
from .sources import Imports

if TYPE_CHECKING:
    from .one_file import Migrated

REMOVED = re.compile(r"`\w+\.(\w+) = .* removed: nothing reads it|removed: nothing reads \w+\.(\w+) any more")


def read_by_others(done: list[Migrated], imports: Imports) -> Iterator[tuple[int, set[str]]]:
    """The places of files that are to keep options, and which."""
    for i, m in enumerate(done):
        said = [REMOVED.search(e.message) for e in m.report.edits if e.code == RemoveUnusedDevices.code]
        gone = {found[1] or found[2] for found in said if found is not None}
        if not gone:
            continue
        project = imports.project(m.path)
        others = [n for n in done if n is not m and n.result is not None and imports.real(n.path) in project]
        if read := {name for name in gone if any(_reads(n.result.text, name) for n in others if n.result)}:
            yield i, read


def _reads(text: str, name: str) -> bool:
    """`args.name`, which is read and not set."""
    reads = re.finditer(rf"\b(\w+)\.{name}\b(?!\s*=[^=])", text)
    return any(OPTIONS.match(found[1]) and found[1] not in ("self", "cls") for found in reads)

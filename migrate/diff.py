"""What changed, as `patch` and `git apply` read it."""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterator


def unified(before: str, after: str, name: str) -> Iterator[str]:
    """The lines of a unified diff. A line ends at its newline alone: a form feed or a separator stands within it."""
    old, new = (list(io.StringIO(text, newline="\n")) for text in (before, after))
    for line in difflib.unified_diff(old, new, name, name):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"

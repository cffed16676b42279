"""The nearest file name, for a script that was not found."""

from __future__ import annotations

import difflib
from pathlib import Path


def near_files(path: str) -> str | None:
    """A Python file beside where `path` should be, with a similar name; None when there is none."""
    wanted = Path(path)
    if not wanted.parent.is_dir():
        return None
    there = [file.name for file in wanted.parent.glob("*.py")]
    near = difflib.get_close_matches(wanted.name, there, n=1, cutoff=0.5)
    return str(wanted.parent / near[0]) if near else None

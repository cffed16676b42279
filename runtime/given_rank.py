"""`--local_rank N`, which torch.distributed.launch gave every script: one without such an option does not see it.

A migrated script's command line works as it did, although its parser has lost the line.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

GIVEN = re.compile(r"--local[-_]rank(=.*)?")


def on_import() -> None:
    """Take the option out of `sys.argv` where the script that runs does not speak of it."""
    if any(map(GIVEN.fullmatch, sys.argv[1:])) and not _speaks_of_it(sys.argv[0]):
        sys.argv[1:] = without(sys.argv[1:])


def without(arguments: list[str]) -> list[str]:
    """The arguments but for the option and its value."""
    kept, skips = [], False
    for argument in arguments:
        if skips:
            skips = False
            continue
        found = GIVEN.fullmatch(argument)
        if found is None:
            kept.append(argument)
        else:
            skips = found[1] is None
    return kept


def _speaks_of_it(script: str) -> bool:
    try:
        text = Path(script).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return True
    return "ptmigrate.runtime" not in text or re.search("local[-_]rank", text) is not None

"""The standard streams of a command: what they cannot take, and how it is told when they take no more."""

from __future__ import annotations

import os
import sys

NOT_WRITTEN = 2  # the exit code


def make_streams() -> None:
    """Streams that take everything: a closed one is written nowhere, and what a terminal cannot show is escaped."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def not_written(error: OSError) -> int:
    """The exit code where standard output takes no more: one line, and none for `| head`, which has enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is written nowhere
    if not isinstance(error, BrokenPipeError):
        print(f"error: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
    return NOT_WRITTEN

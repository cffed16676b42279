"""The command `ptlint`: exit 0 if nothing is found, 1 if something is, 2 if a file or the command line is wrong."""

from __future__ import annotations

import os
import sys

FORMATS = ("concise", "full", "json", "sarif", "github", "junit")


def main(arguments: list[str] | None = None) -> None:
    _make_streams()
    try:
        code = run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is written nowhere
        if not isinstance(error, BrokenPipeError):  # `ptlint . | head`: whoever reads has enough
            print(f"error: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _make_streams() -> None:
    """Streams that take everything: a closed one is written nowhere, and what a terminal cannot show is escaped."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def run(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        return _version()
    from .options import parse

    options = parse(arguments)
    from .command import execute

    return execute(options)


def _version() -> int:
    from importlib.metadata import version

    print(f"ptlint {version('ptmigrate')}")
    return 0


if __name__ == "__main__":
    main()

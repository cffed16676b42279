"""The command `ptlint`: exit 0 if nothing is found, 1 if something is, 2 if a file or the command line is wrong."""

from __future__ import annotations

import sys

FORMATS = ("concise", "full", "json", "sarif", "github", "junit")


def main(arguments: list[str] | None = None) -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name or a line that the terminal cannot show is shown escaped
            stream.reconfigure(errors="backslashreplace")
    try:
        code = run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # `ptlint . | head`: whoever reads has enough
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 2
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


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

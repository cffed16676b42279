"""The command `ptlint`: exit 0 if nothing is found, 1 if something is, 2 if a file or the command line is wrong."""

from __future__ import annotations

import sys

from .streams import make_streams, not_written

FORMATS = ("concise", "full", "json", "sarif", "github", "junit")


def main(arguments: list[str] | None = None) -> None:
    make_streams()
    try:
        code = run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except OSError as error:
        code = not_written(error)
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

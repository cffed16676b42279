"""The command line of ptlint."""

from __future__ import annotations

import argparse

from .cli import FORMATS

DESCRIPTION = "Flag what breaks or slows distributed PyTorch training."
EXITS = "Exit status: 0 nothing found, 1 something found, 2 a file could not be read or the command line is wrong."


def parse(arguments: list[str]) -> argparse.Namespace:
    return parser().parse_args(arguments)


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser("ptlint", description=DESCRIPTION, epilog=EXITS, allow_abbrev=False)
    p.add_argument("paths", nargs="*", metavar="PATH", help="files and folders (default: the current folder)")
    p.add_argument("--version", action="store_true", help="print the version and exit")
    p.add_argument("--output-format", choices=FORMATS, help="how findings are written (default: concise)")
    return p

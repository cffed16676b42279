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
    rules = p.add_argument_group("rules")
    rules.add_argument("--select", action="append", type=_codes, metavar="CODES", help="only these (PTM3, PTM301, ALL)")
    rules.add_argument("--ignore", action="append", type=_codes, metavar="CODES", help="all but these")
    rules.add_argument("--explain", metavar="CODE", help="print what a rule is about and exit")
    rules.add_argument("--list", action="store_true", help="print all rules and exit")
    change = p.add_argument_group("changing files")
    change.add_argument("--fix", action="store_true", help="repair what can safely be repaired")
    change.add_argument(
        "--unsafe-fixes", action="store_true", help="repair (or, with --diff, show) also what needs a look after"
    )
    change.add_argument("--diff", action="store_true", help="print what --fix would change, and write nothing")
    change.add_argument("--add-noqa", action="store_true", help="suppress every finding where it stands")
    output = p.add_argument_group("output")
    output.add_argument("--output-format", choices=FORMATS, help="how findings are written (default: concise)")
    output.add_argument("--statistics", action="store_true", help="print how many findings each rule has")
    running = p.add_argument_group("running")
    running.add_argument(
        "--jobs", type=_jobs, metavar="N", help="processes (default: as many as idle cores, for many files)"
    )
    running.add_argument("--no-cache", action="store_true", help="neither read nor write .ptlint_cache")
    running.add_argument("--stdin-filename", metavar="NAME", help="lint standard input as the file of this name")
    running.add_argument("--config", metavar="FILE", help="a pyproject.toml other than the nearest one")
    return p


def _codes(text: str) -> list[str]:
    return [code for code in text.replace(",", " ").split() if code]


def _jobs(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)

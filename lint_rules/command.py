"""What one call of ptlint does, from its options to its exit status."""

from __future__ import annotations

import sys
from argparse import Namespace
from importlib import import_module

from .engine import Linter
from .registry import choose
from .result import Result
from .run import lint_files
from .walk import python_files


def execute(options: Namespace) -> int:
    result = lint_files(python_files(options.paths or ["."]), Linter(choose()))
    write(result, options.output_format or "concise")
    return result.exit_code


def write(result: Result, output_format: str) -> None:
    """Findings to standard output; errors to standard error, unless the format has a place for them."""
    writer = import_module(f".output.{output_format}", __package__)
    for line in writer.write(result, color=sys.stdout.isatty()):
        print(line)
    if output_format in ("concise", "full"):
        for error in result.errors:
            print(f"error: {error}", file=sys.stderr)

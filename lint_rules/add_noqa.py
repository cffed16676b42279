"""`--add-noqa`: a suppression behind every line with a finding, so that a project can start from a clean slate."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from ptmigrate.migrate.facts.source import SourceError, read_source

from .noqa import NOQA
from .result import Result
from .write import write_text

LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")


def add_noqa(result: Result, again: Callable[[list[str]], Result]) -> Result:
    """What could not be suppressed: a finding in the middle of a long string has no line for a comment."""
    wanted: dict[str, dict[int, set[str]]] = {}
    for path, f in result.findings:
        wanted.setdefault(path, {}).setdefault(f.line, set()).add(f.code)
    for path, lines in wanted.items():
        try:
            source = read_source(path)
        except SourceError:
            continue
        text = suppressed(source.text, lines)
        if ast.dump(ast.parse(text)) == ast.dump(ast.parse(source.text)):
            write_text(source, text)
    left = again(list(wanted))
    left.errors = result.errors
    left.files = result.files
    return left


def suppressed(text: str, codes: dict[int, set[str]]) -> str:
    lines = lines_of(text)
    for number, wanted in codes.items():
        body, end = lines[number - 1]
        if body.endswith("\\"):
            continue
        found = NOQA.search(body)
        if found and found.group("codes"):
            body = f"{body[: found.end()]}, {', '.join(sorted(wanted))}{body[found.end() :]}"
        else:
            body = f"{body.rstrip()}  # noqa: {', '.join(sorted(wanted))}"
        lines[number - 1] = (body, end)
    return joined(lines)


def lines_of(text: str) -> list[tuple[str, str]]:
    """The lines as the parser counts them, each with its own end."""
    return [(m.group(1), m.group(2)) for m in LINE.finditer(text)]


def joined(lines: list[tuple[str, str]]) -> str:
    return "".join(body + end for body, end in lines)

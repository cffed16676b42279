"""Linting many files, one after the other; a file that fails never stops the others. Over cores: parallel.py."""

from __future__ import annotations

import gc
from collections.abc import Iterable

from ptmigrate.migrate.facts.source import SourceError, read_bytes

from .engine import Linter
from .result import Result
from .rule import Finding

Outcome = tuple[str, list[Finding], SourceError | None]


def lint_file(path: str, linter: Linter) -> Outcome:
    return lint_data(path, None, linter)


def lint_data(path: str, data: bytes | None, linter: Linter) -> Outcome:
    """The findings of one file, or why there are none."""
    try:
        return path, linter.lint_bytes(read_bytes(path) if data is None else data, path), None
    except SourceError as error:
        return path, [], error
    except Exception as error:  # a fault of a rule is told as one, and the other files are linted
        return path, [], SourceError(path, 1, 1, f"internal error: {type(error).__name__}: {error}")


def lint_files(files: Iterable[str | SourceError], linter: Linter) -> Result:
    result = Result()
    collecting = gc.isenabled()
    gc.disable()  # trees are large and short-lived; looking for cycles in them doubles the time
    try:
        for number, path in enumerate(files):
            if isinstance(path, SourceError):
                result.errors.append(path)
                continue
            add(result, lint_file(path, linter))
            if number % 200 == 199:
                gc.collect(1)
    finally:
        if collecting:
            gc.enable()
    return result


def add(result: Result, outcome: Outcome) -> None:
    path, findings, error = outcome
    result.files += 1
    result.findings += [(path, finding) for finding in findings]
    if error is not None:
        result.errors.append(error)

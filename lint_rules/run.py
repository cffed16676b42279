"""Linting many files, one after the other; a file that fails never stops the others. Over cores: parallel.py."""

from __future__ import annotations

import gc
from collections.abc import Iterable

from ptmigrate.migrate.facts.source import SourceError, mentions_torch, read_bytes

from .engine import Linter
from .result import Result
from .rule import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cache import Cache

# path, what was found, why it could not be looked at, the key under which it is new in the cache
Outcome = tuple[str, list[Finding], "SourceError | None", "str | None"]


def lint_file(path: str, linter: Linter, cache: Cache | None = None) -> Outcome:
    """The findings of one file, or why there are none."""
    try:
        data = read_bytes(path)
    except SourceError as error:
        return path, [], error, None
    return lint_data(path, data, linter, cache)


def lint_data(path: str, data: bytes, linter: Linter, cache: Cache | None = None) -> Outcome:
    key = None
    try:
        if cache is not None and mentions_torch(data):
            from .cache import key_of

            key = key_of(data)
            known = cache.get(key)
            if known is not None:
                return path, known, None, None
        return path, linter.lint_bytes(data, path), None, key
    except SourceError as error:
        return path, [], error, None
    except Exception as error:  # a fault of a rule is told as one, and the other files are linted
        return path, [], SourceError(path, 1, 1, f"internal error: {type(error).__name__}: {error}"), None


def lint_files(files: Iterable[str | SourceError], linter: Linter, cache: Cache | None = None) -> Result:
    result = Result()
    collecting = gc.isenabled()
    gc.disable()  # trees are large and short-lived; looking for cycles in them doubles the time
    try:
        for number, path in enumerate(files):
            if isinstance(path, SourceError):
                result.errors.append(path)
            else:
                result.add(lint_file(path, linter, cache), cache)
            if number % 100 == 99:
                gc.collect(1)
    finally:
        if collecting:
            gc.enable()
    return result

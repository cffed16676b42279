"""Linting many files, one after the other; a file that fails never stops the others. Over cores: parallel.py."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterable

from ptmigrate.migrate.facts.source import SourceError, mentions_torch, read_bytes

from .engine import Linter
from .result import Result
from .rule import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cache import Cache

LOOK = 0.3  # seconds in one process before more are thought of
WORTH = 1.0  # seconds of work in one process that pay for starting others

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


def lint_for_a_while(files: list[str], linter: Linter, cache: Cache | None, result: Result) -> list[str]:
    """Lint until it is seen that the rest takes so long that processes are worth starting; the files that are left."""
    start = time.perf_counter()
    sizes = [_size(path) for path in files]
    total, done, tried = sum(sizes), 0, 0
    while tried < len(files):
        some = files[tried : tried + 8]
        lint_files(some, linter, cache, result)
        done += sum(sizes[tried : tried + 8])
        tried += len(some)
        taken = time.perf_counter() - start
        if taken > LOOK and taken / max(done, 1) * (total - done) > WORTH:
            break
    return files[tried:]


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def lint_files(
    files: Iterable[str | SourceError], linter: Linter, cache: Cache | None = None, result: Result | None = None
) -> Result:
    result = Result() if result is None else result
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

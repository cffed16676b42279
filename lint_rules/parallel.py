"""Linting over several cores: each process reads, looks up and lints its share of the files."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
import threading

from .cache import Cache
from .engine import Linter
from .registry import choose
from .result import Result
from .run import Outcome, lint_file

_linter: Linter
_done = 0
_cache: Cache | None


def lint_parallel(
    files: list[str], codes: list[str], report_unused: bool, cache: Cache | None, jobs: int, result: Result
) -> None:
    """The same as one process adds to the result, in the same order."""
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if "fork" in methods else None)
    if cache is not None:
        _ = cache.entries  # read once, before the processes are forked
    share = max(1, min(32, len(files) // (jobs * 4)))
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the pool is ended on the way
    with context.Pool(jobs, _start, (codes, report_unused, cache)) as pool:
        for outcome in pool.imap(_lint, files, share):
            result.add(outcome, cache)


def _start(codes: list[str], report_unused: bool, cache: Cache | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C and ends the pool
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.disable()
    global _linter, _cache
    _linter, _cache = Linter(choose(codes) if codes else [], report_unused), cache


def _lint(path: str) -> Outcome:
    global _done
    outcome = lint_file(path, _linter, _cache)
    _done += 1
    if _done % 100 == 0:
        gc.collect(1)
    return outcome

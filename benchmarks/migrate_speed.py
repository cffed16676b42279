"""The time of a migration over that of `libcst.parse_module` and one visit, side by side. Budget: 2 times.

python benchmarks/migrate_speed.py [FILE...]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import libcst as cst
from ptmigrate.migrate.migrate import migrate_text

ROUNDS = 7
FIXTURES = Path(__file__).parent.parent / "fixtures"


class Visit(cst.CSTTransformer):
    """Every node once, nothing changed."""


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratio(text: str) -> tuple[float, float]:
    """The middle of the ratios of rounds that follow each other, and the middle time of a migration."""
    pairs = [
        (seconds(lambda: cst.parse_module(text).visit(Visit())), seconds(lambda: migrate_text(text)))
        for _ in range(ROUNDS)
    ]
    return statistics.median(b / a for a, b in pairs), statistics.median(b for _, b in pairs)


def main() -> None:
    files = [Path(f) for f in sys.argv[1:]] or sorted(FIXTURES.rglob("*.py"))
    for path in files:
        text = path.read_text()
        result = migrate_text(text)
        times, took = ratio(text)
        print(f"{times:5.2f} x  {took * 1000:7.1f} ms  {len(text.splitlines()):5} lines  {result.plan:12} {path}")


if __name__ == "__main__":
    main()

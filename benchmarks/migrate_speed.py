"""The time of a migration over that of `libcst.parse_module` and one visit, side by side. Budget: 2 times.

python benchmarks/migrate_speed.py [FILE...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import libcst as cst
from ptmigrate.migrate.migrate import migrate_text

ROUNDS = 9
FIXTURES = Path(__file__).parent.parent / "fixtures"


class Visit(cst.CSTTransformer):
    """Every node once, nothing changed."""


def seconds(work: Callable[[], object]) -> float:
    """Time of the processor that this process had: what else runs on the machine counts little."""
    start = time.process_time()
    work()
    return time.process_time() - start


def ratio(text: str) -> tuple[float, float]:
    """The least time of a migration over that of a parse and a visit, in rounds that take turns, and the former."""
    pairs = [
        (seconds(lambda: cst.parse_module(text).visit(Visit())), seconds(lambda: migrate_text(text)))
        for _ in range(ROUNDS)
    ]
    parses, migrations = map(min, zip(*pairs, strict=True))
    return migrations / parses, migrations


def main() -> None:
    files = [Path(f) for f in sys.argv[1:]] or sorted(FIXTURES.rglob("*.py"))
    for path in files:
        text = path.read_text()
        result = migrate_text(text)
        times, took = ratio(text)
        print(f"{times:5.2f} x  {took * 1000:7.1f} ms  {len(text.splitlines()):5} lines  {result.plan:12} {path}")


if __name__ == "__main__":
    main()

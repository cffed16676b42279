"""The time of a migration over that of `libcst.parse_module` and one visit, side by side. Budget: 2 times, of any file.

python benchmarks/migrate_speed.py [FILE OR FOLDER...]
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, median

import libcst as cst
from ptmigrate.migrate.facts.source import SourceError, read_source
from ptmigrate.migrate.migrate import migrate_text

ROUNDS = 9
BUDGET = 2
FIXTURES = Path(__file__).parent.parent / "fixtures"


class Visit(cst.CSTTransformer):
    """Every node once, nothing changed."""


def seconds(work: Callable[[], object]) -> float:
    """Time of the processor that this process had, the collection of what the work left behind included."""
    start = time.process_time()
    work()
    gc.collect(0)
    return time.process_time() - start


def ratio(text: str) -> tuple[float, float]:
    """The least time of a migration over that of a parse and a visit, in rounds that take turns, and the former."""
    pairs = [
        (seconds(lambda: cst.parse_module(text).visit(Visit())), seconds(lambda: migrate_text(text)))
        for _ in range(ROUNDS)
    ]
    parses, migrations = map(min, zip(*pairs, strict=True))
    return migrations / parses, migrations


def files(paths: list[Path]) -> Iterator[Path]:
    """Those that speak of torch: the others are never parsed."""
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            if b"torch" in file.read_bytes():
                yield file


def main() -> None:
    found: list[float] = []
    for path in files([Path(f) for f in sys.argv[1:]] or [FIXTURES]):
        try:
            text = read_source(path).text
            result = migrate_text(text)
            cst.parse_module(text)
        except (SourceError, SyntaxError, cst.ParserSyntaxError) as why:
            print(f"not read: {path}: {str(why).splitlines()[0]}")
            continue
        times, took = ratio(text)
        print(f"{times:5.2f} x  {took * 1000:7.1f} ms  {len(text.splitlines()):5} lines  {result.plan:12} {path}")
        if result.text != text:
            found.append(times)
    if found:
        over = sum(times > BUDGET for times in found)
        print(f"{len(found)} files with work: worst {max(found):.2f} x, median {median(found):.2f} x,", end=" ")
        print(f"mean {mean(found):.2f} x; {over} over {BUDGET} x")


if __name__ == "__main__":
    main()

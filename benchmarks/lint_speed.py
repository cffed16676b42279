"""How long ptlint takes, side by side with parsing and with the interpreter's own start.

    python benchmarks/lint_speed.py [FOLDER]

Nothing is downloaded: the tree is an installed package, torch by default. Every figure is the best of several runs
taken in turn, so that a busy machine does not matter much. Where ruff is installed, it runs too, for comparison.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable

from ptmigrate.lint_rules.engine import Linter
from ptmigrate.lint_rules.registry import all_rules
from ptmigrate.lint_rules.run import lint_files
from ptmigrate.lint_rules.walk import python_files
from ptmigrate.migrate.facts.source import mentions_torch

SMALL = "import torch\n\nmodel = torch.nn.Linear(2, 2)\nmodel.to(device)\n"
BUDGET_TREE, BUDGET_FILE = 3.0, 6.0


def main() -> int:
    warnings.simplefilter("ignore")
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(importlib.util.find_spec("torch").origin)  # type: ignore[union-attr, type-var]
    files = [f for f in python_files([folder]) if isinstance(f, str)]
    worth = [f for f in files if mentions_torch(_read(f))]
    lines = sum(_read(f).count(b"\n") for f in worth)
    print(f"{folder}: {len(files)} files, {len(worth)} of them with torch, {lines:,} lines")
    print(f"{len(all_rules())} rules, Python {sys.version.split()[0]}\n")
    within = tree(worth[::4])
    whole_command(folder)
    return 0 if small_file() and within else 1


def tree(files: list[str]) -> bool:
    """One process, no cache: reading, parsing and all rules, against reading and `ast.parse`."""
    linter = Linter(list(all_rules()))
    parse, lint = best_of(3, lambda: _parse(files), lambda: lint_files(files, linter))
    print(f"in this process, {len(files)} of the files with torch:")
    print(f"{'ast.parse':28} {parse:8.2f} s")
    print(f"{'ptlint, all rules':28} {lint:8.2f} s   {lint / parse:.2f} x (at most {BUDGET_TREE})")
    return lint <= BUDGET_TREE * parse


def whole_command(folder: str) -> None:
    """The command on the same tree: one core, all cores, an empty cache, a full one; ruff beside it."""
    with tempfile.TemporaryDirectory() as scratch:
        os.symlink(folder, os.path.join(scratch, "tree"))
        with open(os.path.join(scratch, "pyproject.toml"), "w") as file:
            file.write("[tool.ptmigrate]\ncache = true\n")

        def command(*options: str) -> Callable[[], object]:
            line = [sys.executable, "-m", "ptmigrate.lint_rules.cli", "--config", "pyproject.toml", *options, "tree/"]
            return lambda: subprocess.run(line, cwd=scratch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        one, cores = best_of(2, command("--no-cache", "--jobs", "1"), command("--no-cache"))
        print(f"{'command, one core':28} {one:8.2f} s")
        print(f"{f'command, {os.cpu_count()} cores':28} {cores:8.2f} s   {cores / one:.2f} x")
        command("--jobs", "1")()
        (cached,) = best_of(2, command("--jobs", "1"))
        print(f"{'command, one core, cached':28} {cached:8.2f} s   {cached / one:.2f} x")
        ruff = shutil.which("ruff", path=os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", ""))
        if ruff:
            line = [
                ruff,
                "check",
                "--isolated",
                "--no-cache",
                "--select",
                "ALL",
                "-q",
                "--exit-zero",
                "--statistics",
                folder,
            ]
            (took,) = best_of(2, lambda: subprocess.run(line, capture_output=True))
            print(f"{'ruff, all rules, all cores':28} {took:8.2f} s")
        print()


def small_file() -> bool:
    """The whole process for one small file, against an interpreter that does nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "small.py")
        with open(path, "w") as file:
            file.write(SMALL)
        nothing = [sys.executable, "-c", "pass"]
        lint = [sys.executable, "-c", "from ptmigrate.lint_rules.cli import main; main()", path]
        base, took = best_of(15, lambda: subprocess.run(nothing), lambda: subprocess.run(lint))
    print(f"{'python -c pass':28} {base * 1000:8.1f} ms")
    print(f"{'ptlint on a small file':28} {took * 1000:8.1f} ms  {took / base:.2f} x (at most {BUDGET_FILE})")
    return took <= BUDGET_FILE * base


def best_of(rounds: int, *jobs: Callable[[], object]) -> list[float]:
    """The best time of each job, taken in turn so that all see the same machine."""
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(rounds):
        for job, taken in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


def _parse(files: list[str]) -> None:
    for path in files:
        with contextlib.suppress(SyntaxError):
            ast.parse(_read(path))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


if __name__ == "__main__":
    sys.exit(main())

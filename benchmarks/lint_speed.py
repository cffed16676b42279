"""How long ptlint takes, side by side with parsing, the interpreter's own start, ruff and TorchFix.

    python benchmarks/lint_speed.py [--tree FOLDER] [--torchfix COMMAND] [--quick]

Nothing is downloaded: the tree is an installed package, torch by default. ruff is used where it is installed, TorchFix
where its command is found or given (it wants a virtual environment of its own, without torch:
`python -m venv tf && tf/bin/pip install --no-deps torchfix==0.7.0 libcst PyYAML flake8 mccabe pycodestyle pyflakes`).
Every figure is the best of several runs taken in turn. What runs in one process is measured in processor time, which a
busy machine does not stretch; several processes against one by the clock. Exit 1 where a budget is exceeded.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import os
import resource
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
SAMPLE = 84  # files that all linters are given, one of them being slow


def main() -> int:
    options = arguments()
    warnings.simplefilter("ignore")
    files = [f for f in python_files([options.tree]) if isinstance(f, str)]
    worth = [f for f in files if mentions_torch(_read(f))]
    lines = sum(_read(f).count(b"\n") for f in worth)
    print(f"{options.tree}: {len(files)} files, {len(worth)} of them with torch, {lines:,} lines")
    machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{len(all_rules())} rules, Python {sys.version.split()[0]}, {machine}")
    within = [tree(worth[::4]), small_file()]
    others(worth, options.torchfix)
    if not options.quick:
        large_inputs()
        cores_and_cache(options.tree)
    return 0 if all(within) else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    torch = os.path.dirname(importlib.util.find_spec("torch").origin)  # type: ignore[union-attr, type-var]
    parser.add_argument("--tree", default=torch)
    parser.add_argument("--torchfix", default=shutil.which("torchfix"))
    parser.add_argument("--quick", action="store_true", help="only what the budgets are about")
    return parser.parse_args()


def tree(files: list[str]) -> bool:
    """One process, no cache: reading, parsing and all rules, against reading and `ast.parse`."""
    linter = Linter(list(all_rules()))
    parse, lint = best_of(3, time.process_time, lambda: _parse(files), lambda: lint_files(files, linter))
    print(f"\nin one process, {len(files)} of the files with torch (processor time):")
    row("ast.parse", parse, parse)
    row("ptlint, all rules", lint, parse, f"at most {BUDGET_TREE}")
    return lint <= BUDGET_TREE * parse


def small_file() -> bool:
    """The whole process for one small file, against an interpreter that does nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "small.py")
        with open(path, "w") as file:
            file.write(SMALL)
        nothing = command(sys.executable, "-c", "pass")
        lint = command(sys.executable, "-c", "from ptmigrate.lint_rules.cli import main; main()", path)
        base, took = best_of(15, children_time, nothing, lint)
    print("\na small file, the whole process (processor time):")
    row("python -c pass", base, base)
    row("ptlint", took, base, f"at most {BUDGET_FILE}")
    return took <= BUDGET_FILE * base


def others(files: list[str], torchfix: str | None) -> None:
    """The same files for every linter, as commands, one process and no cache each."""
    beside = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")
    ruff = shutil.which("ruff", path=beside)
    with tempfile.TemporaryDirectory() as scratch:
        lines = 0
        for i, path in enumerate(files[:: max(1, len(files) // SAMPLE)][:SAMPLE]):
            shutil.copy(path, os.path.join(scratch, f"f{i}.py"))
            lines += _read(path).count(b"\n")
        names = [os.path.join(scratch, name) for name in sorted(os.listdir(scratch))]
        parsing = "import ast, sys, warnings; warnings.simplefilter('ignore')\n"
        parsing += "for p in sys.argv[1:]: ast.parse(open(p, 'rb').read())"
        jobs = {
            "ast.parse": command(sys.executable, "-c", parsing, *names),
            "ptlint, all rules": command(*PTLINT, "--no-cache", "--jobs", "1", "--select", "ALL", scratch),
        }
        if ruff:
            jobs["ruff, all rules"] = command(
                ruff, "check", "--isolated", "--no-cache", "--select", "ALL", "-q", "--exit-zero", scratch
            )
        if torchfix:
            jobs["TorchFix, all rules"] = command(torchfix, "--select=ALL", scratch, rounds=1)
        else:
            print("\nno torchfix: give its command with --torchfix")
        times = best_of(3, children_time, *jobs.values())
        print(f"\nas commands, {len(names)} files, {lines:,} lines (processor time of all processes):")
        for name, took in zip(jobs, times, strict=True):
            row(name, took, times[0])


def large_inputs() -> None:
    """Ten thousand small files, and one of fifty thousand lines."""
    with tempfile.TemporaryDirectory() as scratch:
        for i in range(100):
            os.mkdir(os.path.join(scratch, f"d{i}"))
            for j in range(100):
                with open(os.path.join(scratch, f"d{i}", f"f{j}.py"), "w") as file:
                    file.write(SMALL if j % 10 == 0 else f"x = {j}\n")
        (took,) = best_of(1, children_time, command(*PTLINT, "--no-cache", "--jobs", "1", scratch))
        print(f"\n10,000 files: {took:.2f} s")
        path = os.path.join(scratch, "long.py")
        with open(path, "w") as file:
            file.write("import torch\n" + "".join(f"t{i} = torch.zeros({i}).add(t{i - 1})\n" for i in range(1, 50_000)))
        (took,) = best_of(1, children_time, command(*PTLINT, "--no-cache", path))
        print(f"50,000 lines in one file: {took:.2f} s")


def cores_and_cache(folder: str) -> None:
    """The whole tree: one process, as many as ptlint starts of itself, a cache that is filled, and one that is full."""
    with tempfile.TemporaryDirectory() as scratch:
        os.symlink(folder, os.path.join(scratch, "tree"))
        with open(os.path.join(scratch, "pyproject.toml"), "w") as file:
            file.write("[tool.ptmigrate]\ncache = true\n")

        def lint(*options: str) -> Callable[[], object]:
            return command(*PTLINT, "--config", "pyproject.toml", *options, "tree/", cwd=scratch)

        one, cores = best_of(2, time.perf_counter, lint("--no-cache", "--jobs", "1"), lint("--no-cache"))
        print("\nthe whole tree, as a command (by the clock):")
        row("one process, no cache", one, one)
        row("as it comes, no cache", cores, one)
        (filled,) = best_of(1, time.perf_counter, lint("--jobs", "1"))
        row("one process, cache filled", filled, one)
        (cached,) = best_of(2, time.perf_counter, lint("--jobs", "1"))
        row("one process, cache full", cached, one)


PTLINT = (sys.executable, "-c", "from ptmigrate.lint_rules.cli import main; main()")


def command(*line: str, cwd: str | None = None, rounds: int | None = None) -> Callable[[], object]:
    """A job that runs a command; one with `rounds` is run so often and no more."""
    left = [rounds]

    def job() -> object:
        if left[0] is not None:
            if left[0] == 0:
                return SKIPPED
            left[0] -= 1
        return subprocess.run(line, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    return job


SKIPPED = object()


def children_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def best_of(rounds: int, clock: Callable[[], float], *jobs: Callable[[], object]) -> list[float]:
    """The best time of each job, taken in turn so that all see the same machine."""
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(rounds):
        for job, taken in zip(jobs, times, strict=True):
            start = clock()
            if job() is not SKIPPED:
                taken.append(clock() - start)
    return [min(taken) for taken in times]


def row(name: str, took: float, base: float, budget: str = "") -> None:
    print(f"  {name:28} {took:9.3f} s {took / base:8.2f} x   {budget}".rstrip())


def _parse(files: list[str]) -> None:
    for path in files:
        with contextlib.suppress(SyntaxError):
            ast.parse(_read(path))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


if __name__ == "__main__":
    sys.exit(main())

"""Engine by kind of run, for real: `run_row(name)` is a row, `docs/engines.md` has all of them.

`python tests/runtime/engine_matrix.py NAME ...` runs these engines and writes their rows into the page.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from launching import SCRIPTS, run
from ptmigrate.runtime.launch.ports import free_port
from ptmigrate.runtime.strategies.needs import installed
from ptmigrate.runtime.strategies.registry import made

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
SCRIPT = str(SCRIPTS / "cells.py")
CELLS = {
    "fit": "fit",
    "validate": "validate",
    "predict": "predict",
    "resume": "resume",
    "save": "its checkpoint on one process",
    "adopt": "one process's checkpoint",
    "clip": "clip",
    "accumulate": "accumulate",
    "bf16": "bf16",
    "manual": "manual optimization",
    "optimizers": "two optimizers",
    "step_end": "step_end",
    "fail": "a failing step",
}
ENGINES = (
    "ddp",
    "ddp_spawn",
    "ddp_fork",
    "dp",
    "ddp2",
    "bagua",
    "ddp_sharded",
    "ddp_sharded_spawn",
    "fsdp",
    "horovod",
    "deepspeed",
    "pipeline",
    "xla",
)
EXACT, LOOSE = 1e-6, 5e-3  # bf16 rounds the parts of a batch otherwise than the whole
LIMIT = 800  # seconds for an engine; those that spawn start processes for every cell
OPTIONS = {"PTMIGRATE_DEVICES": "2", "PTMIGRATE_GLOBAL_BATCH": "1", "PTMIGRATE_ACCELERATOR": "cpu"}


def missing(engine: str) -> str | None:
    """What is not installed for it, and how to."""
    return next((package.install for package in made(engine).packages if not installed(package.module)), None)


def skip_without(engine: str) -> None:
    what = None if engine == "single" else missing(engine)
    if what is not None:
        pytest.skip(f"{engine}: {what}")


@cache
def one_process() -> dict:
    """The numbers to meet, and a checkpoint for the engines to go on from."""
    path = tempfile.mkdtemp() + "/single.ckpt"
    names = [name for name in CELLS if name not in ("save", "adopt", "fail")]
    done = run(SCRIPT, "single", *names, f"save:{path}", PTMIGRATE_ACCELERATOR="cpu", limit=LIMIT)
    assert done.returncode == 0, done.stderr[-3000:]
    return {**json.loads(done.stdout.splitlines()[-1]), "path": path}


def start(engine: str, cells: list[str]) -> subprocess.CompletedProcess:
    """The cells in one pair of processes (or what the engine has instead)."""
    if engine.endswith(("spawn", "fork")):
        return run(SCRIPT, engine, *cells, limit=LIMIT, **OPTIONS)
    kind, device = ("tpu", {"PJRT_DEVICE": "CPU"}) if engine == "xla" else ("cpu", {})
    command = ["-m", "ptmigrate.runtime.cli", "--accelerator", kind, "--devices", "2", "--global-batch"]
    if engine != "ddp2":
        return run(*command, "--strategy", engine, SCRIPT, engine, *cells, limit=LIMIT, **device)
    command += ["--nodes", "2", "--rdzv", f"127.0.0.1:{free_port()}", "--strategy", engine, "--node-rank"]
    with ThreadPoolExecutor() as pool:
        nodes = [pool.submit(run, *command, str(node), SCRIPT, engine, *cells, limit=LIMIT) for node in (0, 1)]
    first, second = (node.result() for node in nodes)
    first.stderr += second.stderr
    return first


@cache
def run_row(engine: str, cells: Sequence[str] = tuple(CELLS)) -> dict[str, str]:
    """{cell: "exact", "works", or "no: the reason"}. Raises AssertionError where a cell neither works nor is
    refused. The last cell is a step that fails.
    """
    one = one_process()
    own = tempfile.mkdtemp() + "/own.ckpt"
    names = [{"save": f"save:{own}", "adopt": f"adopt:{one['path']}"}.get(name, name) for name in cells]
    done = start(engine, names)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, f"{engine}: no answer\n{done.stdout[-500:]}\n{done.stderr[-4000:]}"
    found = json.loads(lines[-1])
    if "refused" not in found.get("save", "refused"):
        again = run(SCRIPT, "single", f"adopt:{own}", limit=LIMIT, PTMIGRATE_ACCELERATOR="cpu")
        assert again.returncode == 0, again.stderr[-3000:]
        found["save"] = json.loads(again.stdout.splitlines()[-1])["adopt"]
    expected = {**one, "save": one["resume"], "adopt": one["resume"]}
    row = {name: judged(engine, name, found[name], expected[name]) for name in cells if name != "fail"}
    ended = done.returncode != 0 and "ValueError: the first failure" in done.stderr
    assert ended, f"{engine}: a failing step ended the job with {done.returncode}\n{done.stderr[-3000:]}"
    return {**row, "fail": "ends"}


def judged(engine: str, name: str, found: dict, expected: dict) -> str:
    if isinstance(found, dict) and "refused" in found:
        return f"no: {found['refused']}"
    mine, wanted = numbers(found), numbers(expected)
    assert len(mine) == len(wanted), (engine, name)
    distance = max(abs(a - b) for a, b in zip(mine, wanted, strict=True))
    assert distance < (LOOSE if name == "bf16" else EXACT), f"{engine}, {name}: off by {distance:.2e}"
    return "works" if name == "bf16" else "exact"


def numbers(value) -> list[float]:
    """All numbers of an answer, in the order of its names."""
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in numbers(value[key])]
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [] if value is None else [value]


# -- the page -----------------------------------------------------------------------------------------------------

MARK = "<!-- from here on written by engine_matrix.py -->\n"


def read_page() -> dict[str, dict[str, str]]:
    """The rows of the page, reasons in their places."""
    text = PAGE.read_text().partition(MARK)[2]
    reasons = dict(re.findall(r"^(\d+)\. (.*)$", text, re.M))
    rows = {}
    for line in re.findall(r"^\| `(.*) \|$", text, re.M):
        name, *cells = [part.strip() for part in line.split("|")]
        filled = [f"no: {reasons[cell]}" if cell in reasons else cell for cell in cells]
        rows[name.rstrip("`")] = dict(zip(CELLS, filled, strict=True))
    return rows


def page(rows: dict[str, dict[str, str]]) -> str:
    """The page with these rows; what stands above the mark stays."""
    reasons: list[str] = []
    lines = [f"| engine | {' | '.join(CELLS.values())} |", f"|---|{'---|' * len(CELLS)}"]
    for engine in sorted(rows, key=ENGINES.index):
        cells = []
        for cell in rows[engine].values():
            reason = cell.removeprefix("no: ")
            if reason != cell and reason not in reasons:
                reasons.append(reason)
            cells.append(cell if reason == cell else str(reasons.index(reason) + 1))
        lines.append(f"| `{engine}` | {' | '.join(cells)} |")
    listed = "\n".join(f"{number}. {reason}" for number, reason in enumerate(reasons, start=1))
    absent = [engine for engine in ENGINES if engine not in rows]
    tail = f"\nNot run where this page was written: {', '.join(absent)}.\n" if absent else ""
    head = PAGE.read_text().partition(MARK)[0]
    return f"{head}{MARK}\n" + "\n".join(lines) + f"\n\n{listed}\n{tail}"


if __name__ == "__main__":
    table = read_page()
    for name in sys.argv[1:]:
        print(f"{name} ...", flush=True)
        table[name] = run_row(name)
        PAGE.write_text(page(table))

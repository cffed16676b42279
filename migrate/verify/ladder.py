"""The proof: original and result run on the CPU with the same seeds, and their losses and parameters are compared.

Rungs: the result parses; it runs; it has the same losses, bit for bit; it runs on N processes; it has the same losses
there, to rounding. A rung that cannot be tried says why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

RECORDER = Path(__file__).with_name("record.py")
TOLERANCE = 1e-5  # of losses on several processes, relative to the larger of 1 and the loss


@dataclass
class Rung:
    name: str
    result: str  # "yes", "no" or "not tried"
    detail: str = ""


@dataclass
class Run:
    """What one run left: exit code, the end of its output, losses and parameters by rank."""

    code: int
    output: str
    losses: dict[int, list[float]] = field(default_factory=dict)
    parameters: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return self.code == 0 and any(self.losses.values())

    @property
    def reason(self) -> str:
        lines = [line for line in self.output.strip().splitlines() if line.strip()]
        if self.code == 0:
            return "it trained nothing: backward() was never called"
        return f"exit code {self.code}: {lines[-1] if lines else 'no output'}"

    def mean_losses(self) -> list[float]:
        """The loss of each global batch: the ranks' losses are weighted so that their mean is it."""
        ranks = list(self.losses.values())
        return [sum(step) / len(ranks) for step in zip(*ranks, strict=False)] if ranks else []


@dataclass
class Ladder:
    rungs: list[Rung]
    original: str  # "yes", or why the original does not run here

    @property
    def proven(self) -> bool:
        return self.original == "yes" and all(r.result == "yes" for r in self.rungs)

    def as_json(self) -> dict[str, Any]:
        return {"original_runs": self.original, "rungs": [asdict(r) for r in self.rungs], "proven": self.proven}


def climb(original: Path, result: Path, args: list[str], devices: int) -> Ladder:
    """Run what has to be run and compare; `result` is the migrated copy of `original`."""
    with tempfile.TemporaryDirectory() as logs:
        rungs = [Rung("parses", "yes")]
        first = _run([sys.executable], original, args, Path(logs, "original"))
        if not first.ok:
            rest = ["runs", "same losses", *_names(devices)]
            return Ladder(rungs + [Rung(n, "not tried", "the original does not run here") for n in rest], first.reason)
        one = _run([sys.executable], result, args, Path(logs, "one"))
        rungs.append(Rung("runs", "yes") if one.ok else Rung("runs", "no", one.reason))
        rungs.append(_same(first, one) if one.ok else Rung("same losses", "not tried"))
        if devices > 1:
            rungs += _distributed(first, result, args, devices, Path(logs, "many"))
        return Ladder(rungs, "yes")


def _names(devices: int) -> list[str]:
    return [f"runs on {devices}", f"same losses on {devices}"] if devices > 1 else []


def _distributed(first: Run, result: Path, args: list[str], devices: int, log: Path) -> list[Rung]:
    runs, same = _names(devices)
    launcher = [sys.executable, "-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", str(devices)]
    many = _run([*launcher, "--strategy", "ddp", "--global-batch"], result, args, log)
    if not many.ok or len(many.losses) != devices:
        return [Rung(runs, "no", many.reason), Rung(same, "not tried")]
    want, got = first.losses[0], many.mean_losses()
    if len(want) != len(got):
        return [Rung(runs, "yes"), Rung(same, "no", f"{len(want)} losses became {len(got)}")]
    worst, at = max((abs(a - b) / max(1.0, abs(a)), i) for i, (a, b) in enumerate(zip(want, got, strict=True)))
    says = f"{len(want)} losses, largest difference {worst:.1e}"
    if worst <= TOLERANCE:
        return [Rung(runs, "yes"), Rung(same, "yes", says)]
    return [Rung(runs, "yes"), Rung(same, "no", f"{says}, at step {at}: {want[at]:.8g} became {got[at]:.8g}")]


def _same(first: Run, one: Run) -> Rung:
    want, got = first.losses[0], one.losses.get(0, [])
    if len(want) != len(got):
        return Rung("same losses", "no", f"{len(want)} losses became {len(got)}")
    different = next((i for i, (a, b) in enumerate(zip(want, got, strict=True)) if a != b), None)
    if different is not None:
        return Rung("same losses", "no", f"at step {different}, {want[different]!r} became {got[different]!r}")
    if [p["digest"] for p in first.parameters] != [p["digest"] for p in one.parameters]:
        return Rung("same losses", "no", "the losses are the same, the final parameters are not")
    return Rung("same losses", "yes", f"{len(want)} losses and {len(first.parameters)} parameters, bit for bit")


def _run(launcher: list[str], script: Path, args: list[str], log: Path) -> Run:
    """One recorded run; the working folder stays the caller's, as for a user who runs the script by hand."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [*launcher, str(RECORDER), str(log), str(script), *args],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    run = Run(done.returncode, done.stdout)
    for path in sorted(log.parent.glob(f"{log.name}.*")):
        rank = int(path.suffix[1:])
        run.losses[rank] = []
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "loss" in row:
                run.losses[rank].append(row["loss"])
            elif rank == 0:
                run.parameters = row["parameters"]
    return run

"""One recorded run of a script: started, watched, ended in time, and what it left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .record import NUDGE, STILL

RECORDER = Path(__file__).with_name("record.py")
LAUNCHED = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
KEPT_OUTPUT = 200_000  # bytes of a run's output that are looked at
GRACE = 10.0  # seconds that a launcher has to end its processes

Watch = Callable[[int], None]  # told how many bytes of losses there are by now


@dataclass
class Run:
    """What one run left: exit code, the end of its output, losses and parameters by rank."""

    code: int
    output: str
    seconds: float = 0.0
    timed_out: bool = False
    losses: dict[int, list[float]] = field(default_factory=dict)
    parameters: list[dict[str, Any]] = field(default_factory=list)
    stilled: list[str] = field(default_factory=list)
    ordered: bool = False  # a DistributedSampler drew its order as shuffle=True does
    size: int = 0  # bytes of the first rank's record

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.timed_out and any(self.losses.values())

    @property
    def error(self) -> str:
        """The line of the output that says what went wrong: the last exception, or the last line."""
        lines = [line.strip() for line in self.output.strip().splitlines() if line.strip()]
        raised = [line for line in lines if re.match(r"([\w.]+: )?[\w.]*(Error|Exception|Interrupt)\b", line)]
        return (raised or lines or ["no output"])[-1]

    @property
    def reason(self) -> str:
        if self.timed_out:
            return f"it had not ended after {self.seconds:.0f} s"
        if self.code == 0:
            return "it trained nothing: backward() was never called"
        return f"exit code {self.code}: {self.error}"

    def mean_losses(self) -> list[float]:
        """The loss of each global batch: the ranks' losses are weighted so that their mean is it."""
        ranks = list(self.losses.values())
        return [sum(step) / len(ranks) for step in zip(*ranks, strict=False)] if ranks else []


def run(
    launcher: list[str],
    script: Path,
    args: list[str],
    log: Path,
    limit: float,
    *,
    watch: Watch | None = None,
    launched: bool = False,
    still: bool = False,
    nudged: bool = False,
) -> Run:
    """Run `script` under the recorder, at most `limit` seconds.

    The working folder stays the caller's, as for a user who runs the script by hand. `launched`: under the environment
    that torchrun would give to one process. `still`, `nudged`: see record.STILL, record.NUDGE.
    """
    env = _environment()
    if launched:
        env |= dict.fromkeys(("RANK", "LOCAL_RANK", "NODE_RANK"), "0") | {"WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    env |= {name: "1" for name, asked in ((STILL, still), (NUDGE, nudged)) if asked}
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [*launcher, str(RECORDER), str(log), str(script), *args],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            timed_out = not _wait(process, limit, log, watch)
        finally:
            _end(process)
        output.seek(max(0, output.seek(0, os.SEEK_END) - KEPT_OUTPUT))
        text = output.read().decode("utf-8", "replace")
    done = Run(process.returncode, text, time.monotonic() - started, timed_out)
    _read(done, log)
    return done


def _environment() -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if k not in LAUNCHED and not k.startswith("PTMIGRATE_")}
    fixed = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg"}
    fixed["MKL_CBWR"] = "COMPATIBLE"  # on some processors MKL rounds by the batch's size, more than training forgives
    return {**env, **fixed, "PYTHONUNBUFFERED": "1", "WANDB_MODE": env.get("WANDB_MODE", "offline")}


def _wait(process: subprocess.Popen[bytes], limit: float, log: Path, watch: Watch | None) -> bool:
    """Whether the process ended by itself in time."""
    deadline = time.monotonic() + limit
    record = Path(f"{log}.0")
    while time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
            return True
        if watch is not None and record.exists():
            watch(record.stat().st_size)
    return process.poll() is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    """No process outlives its run: the launcher is asked to end its own, then the session is ended."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _read(done: Run, log: Path) -> None:
    for path in sorted(log.parent.glob(f"{log.name}.*")):
        rank = int(path.suffix[1:])
        done.losses[rank] = []
        text = path.read_text(encoding="utf-8")
        done.size = done.size or len(text)
        for line in text.splitlines(keepends=True):
            if not line.endswith("\n"):
                break  # cut off in the middle
            row = json.loads(line)
            if "loss" in row:
                done.losses[rank].append(row["loss"])
            elif rank == 0:
                done.parameters, done.stilled, done.ordered = row["parameters"], row["stilled"], row["ordered"]


def python() -> list[str]:
    return [sys.executable]


def ptrun(devices: int) -> list[str]:
    launcher = [sys.executable, "-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", str(devices)]
    return [*launcher, "--strategy", "ddp", "--global-batch"]

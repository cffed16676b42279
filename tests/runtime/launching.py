"""Running scripts on several processes: free ports, the loopback, time limits, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
LIMIT = 200
MANY = [pytest.param(processes, marks=pytest.mark.slow) for processes in (3, 4)]


def environment() -> dict[str, str]:
    """Ours, without what a launcher around the tests may have set."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PTMIGRATE_")}
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        clean.pop(name, None)
    return {**clean, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def run(*command: str, cwd: Path | None = None, limit: float = LIMIT, **variables: str) -> subprocess.CompletedProcess:
    """Run a command in a process group of its own, which is ended whole when it takes too long."""
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=cwd,
        env={**environment(), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        pytest.fail(f"{command} took more than {limit} s\n{out}\n{err}")
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def ptrun(*arguments: str, **options) -> subprocess.CompletedProcess:
    return run("-m", "ptmigrate.runtime.cli", *arguments, **options)
